"""The kinds of task: each defines how a model's output becomes a loss, a prediction, a score and a distillation target.

| kind           | an example has                                   | file             |
|----------------|--------------------------------------------------|------------------|
| `Classify`     | one right class                                  | `one_right.py`   |
| `Choose`       | its own texts, one of which is right             | `one_right.py`   |
| `SoftLabel`    | several answers, each right to a degree: VQA     | `several.py`     |
| `MultiLabel`   | any number of right classes                      | `several.py`     |
| `MaskedPhrase` | words that are hidden in its caption             | `phrase.py`      |
| `Prompted`     | one right class, known by its name in prompts    | `pairs.py`       |
| `Retrieve`     | an image and its own texts                       | `pairs.py`       |
| `Generate`     | a text that answers its text, or its image       | `generate.py`    |
"""

from holdfast.tasks.base import OfHead
from holdfast.tasks.distillation import sigmoid_divergence, softmax_divergence
from holdfast.tasks.generate import Generate, References
from holdfast.tasks.one_right import Choose, Classify, OneRight
from holdfast.tasks.pairs import Prompted, Prompts, Retrieve
from holdfast.tasks.phrase import MaskedPhrase, phrase_losses
from holdfast.tasks.several import MultiLabel, SoftLabel

__all__ = [
    "Choose",
    "Classify",
    "Generate",
    "MaskedPhrase",
    "MultiLabel",
    "OfHead",
    "OneRight",
    "Prompted",
    "Prompts",
    "References",
    "Retrieve",
    "SoftLabel",
    "phrase_losses",
    "sigmoid_divergence",
    "softmax_divergence",
]


def __dir__() -> list[str]:
    return sorted(__all__)
