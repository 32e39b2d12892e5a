"""The measures of all four benchmarks, as pure functions of numbers and arrays.

Each takes array-likes and returns floats or NumPy arrays, names its source and its equation, and raises a UserError for
invalid input. A measure that has no value is returned as `Undefined`: a NaN with a reason.
"""

from holdfast.metrics.anytime import anytime_area, anytime_curve
from holdfast.metrics.classification import accuracy, confusion, micro_f1, top1
from holdfast.metrics.composition import composition_scores, confidence_interval, harmonic_mean, related_score
from holdfast.metrics.forgetting import (
    backward_transfer,
    cl_score,
    final_accuracy,
    forgetting,
    forward_transfer,
    intransigence,
    learning_accuracy,
    mean_accuracy,
    remembering,
)
from holdfast.metrics.phrases import (
    aligned_bleu,
    bleu,
    group_means,
    log_perplexity,
    perplexity_forgetting,
    phrase_log_perplexities,
)
from holdfast.metrics.power import detectable, pairs_needed, power
from holdfast.metrics.retrieval import recalls
from holdfast.metrics.sequences import (
    average_incremental_accuracy,
    average_over_stages,
    drop_from_best,
    zero_shot_transfer,
)
from holdfast.metrics.statistics import (
    PairedBootstrap,
    Summary,
    mean,
    paired_bootstrap,
    standard_deviation,
    summary,
    t_interval,
)
from holdfast.metrics.text import (
    SCORERS,
    caption_words,
    cider,
    cider_d,
    corpus_bleu,
    exact_match,
    normalise_text,
    rouge_l,
    sentence_bleu,
    vqa_scores,
)
from holdfast.metrics.transfer import forgetting_transfer, knowledge_transfer, low_shot_transfer
from holdfast.metrics.undefined import Undefined
from holdfast.metrics.vqa import normalise_answer, soft_targets, vqa_accuracy, vqa_score

__all__ = [
    "SCORERS",
    "PairedBootstrap",
    "Summary",
    "Undefined",
    "accuracy",
    "aligned_bleu",
    "anytime_area",
    "anytime_curve",
    "average_incremental_accuracy",
    "average_over_stages",
    "backward_transfer",
    "bleu",
    "caption_words",
    "cider",
    "cider_d",
    "cl_score",
    "composition_scores",
    "confidence_interval",
    "confusion",
    "corpus_bleu",
    "detectable",
    "drop_from_best",
    "exact_match",
    "final_accuracy",
    "forgetting",
    "forgetting_transfer",
    "forward_transfer",
    "group_means",
    "harmonic_mean",
    "intransigence",
    "knowledge_transfer",
    "learning_accuracy",
    "log_perplexity",
    "low_shot_transfer",
    "mean",
    "mean_accuracy",
    "micro_f1",
    "normalise_answer",
    "normalise_text",
    "paired_bootstrap",
    "pairs_needed",
    "perplexity_forgetting",
    "phrase_log_perplexities",
    "power",
    "recalls",
    "related_score",
    "remembering",
    "rouge_l",
    "sentence_bleu",
    "soft_targets",
    "standard_deviation",
    "summary",
    "t_interval",
    "top1",
    "vqa_accuracy",
    "vqa_score",
    "vqa_scores",
    "zero_shot_transfer",
]


def __dir__() -> list[str]:
    return sorted(__all__)
