"""Everything that is built in, by name: where it is, and what it is in a line. `registry` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Line(NamedTuple):
    """A line of these tables: the first fields of `registry.Entry`, which explains them."""

    place: str
    summary: str
    aliases: tuple[str, ...] = ()
    rows: Mapping[str, tuple[str, str]] = MappingProxyType({})
    within: bool = False


BENCHMARKS: dict[str, Line] = {
    "patterns": Line(
        "holdfast.benchmarks.patterns.benchmark:Patterns", "ten procedural classes: no download, seconds to run"
    ),
    "folder": Line("holdfast.benchmarks.folder.benchmark:FolderData", "your own pictures, in a folder for each class"),
    "dataset": Line("holdfast.benchmarks.dataset.benchmark:ReadData", "the classes of any dataset that has a reader"),
    "table": Line("holdfast.benchmarks.table.benchmark:TableData", "your own rows of pictures, texts or both"),
    "cfst:cgqa": Line(
        "holdfast.benchmarks.cfst.benchmark:Cgqa", "pairs of GQA's concepts in stages, then tests of composition"
    ),
    "cfst:cobj": Line(
        "holdfast.benchmarks.cfst.benchmark:Cobj", "pairs of Objects365's things in stages, then tests of composition"
    ),
    "cfst:cpin": Line(
        "holdfast.benchmarks.cfst.benchmark:Cpin",
        "groups of animals' parts in stages, then few-shot tests of composition",
    ),
    "cfst:cifar100": Line("holdfast.benchmarks.cfst.benchmark:Cifar100", "CIFAR-100 in ten stages of ten classes"),
    "climb": Line(
        "holdfast.benchmarks.climb.benchmark:Climb",
        "VQAv2, NLVR2, SNLI-VE and VCR one after another, then low-shot transfer",
    ),
    "viscoll:coco": Line(
        "holdfast.benchmarks.viscoll.benchmark:CocoShift",
        "phrases of COCO's captions from a shifting stream without boundaries",
        ("viscoll", "coco-shift"),
    ),
    "viscoll:flickr": Line(
        "holdfast.benchmarks.viscoll.benchmark:FlickrShift",
        "phrases of Flickr30k's captions from a shifting stream, with up to a thousand nouns",
        ("flickr-shift",),
    ),
    "viscoll:flickr8k": Line(
        "holdfast.benchmarks.viscoll.benchmark:Flickr8kShift", "phrases of Flickr8k's photographs from such a stream"
    ),
    "clvqa": Line(
        "holdfast.benchmarks.clvqa.benchmark:Clvqa",
        "Wh- and yes/no-questions on CLEVR in either order, with one output layer",
        ("greco",),
    ),
    "text:cl": Line(
        "holdfast.benchmarks.text.benchmark:TextCl",
        "text classifications one after another, answered in words (O-LoRA)",
    ),
    "captions": Line(
        "holdfast.benchmarks.captions.benchmark:Captions", "captions of pictures from one domain after another"
    ),
    "instructions:coin": Line(
        "holdfast.benchmarks.instructions.benchmark:Coin", "CoIN's eight tasks of instructions with pictures"
    ),
    "instructions:ucit": Line(
        "holdfast.benchmarks.instructions.benchmark:Ucit",
        "UCIT's six tasks of instructions with pictures, two of them captions",
    ),
    "mtil": Line(
        "holdfast.benchmarks.mtil.benchmark:Mtil",
        "eleven datasets one after another for a dual encoder, with zero-shot scores (ZSCL)",
    ),
    "climb:lowshot": Line(
        "holdfast.benchmarks.climb.lowshot:LowShot",
        "one task of CLiMB, with pictures, text or both, learned from few examples",
        within=True,
    ),
}

_DATASETS = {
    "vqav2": "questions about pictures, each with ten people's answers",
    "nlvr2": "statements that are true or false of two pictures",
    "snli_ve": "hypotheses that a picture entails, leaves open or contradicts",
    "vcr": "questions about people in a scene, with four answers and four reasons",
    "imdb": "film reviews, good or bad",
    "sst2": "sentences from reviews, good or bad",
    "hellaswag": "how a text continues: one of four endings",
    "commonsenseqa": "questions of common sense, with five answers",
    "piqa": "how to reach a goal: one of two solutions",
    "imagenet": "pictures of a thousand classes",
    "inaturalist2019": "pictures of 1,010 species",
    "places365": "pictures of 365 kinds of place",
    "coco": "pictures with objects and captions, under the names of 2014 and 2017",
    "flickr8k": "photographs with five captions each",
    "flickr30k_entities": "captions whose phrases are tied to boxes",
    "phrase_streams": "VisCOLL's released streams of masked phrases",
    "nikolaus": "COCO without 24 pairs of words, for compositional tests",
    "clevr": "questions about blocks, with the programs that answer them",
    "gqa": "scene graphs of pictures, and questions",
    "objects365": "pictures with objects of 365 classes",
    "partimagenet": "animals and vehicles with their parts",
    "cifar100": "small pictures of a hundred classes",
    "region_features": "features of boxes, as HDF5 and as TSV",
    "aircraft": "photographs of a hundred variants of aircraft",
    "caltech101": "photographs of 101 kinds of object",
    "dtd": "photographs of 47 kinds of texture",
    "eurosat": "satellite pictures of ten kinds of land",
    "flowers102": "photographs of 102 kinds of flower",
    "food101": "photographs of 101 dishes",
    "mnist": "handwritten digits",
    "oxford_pets": "photographs of 37 breeds of cats and dogs",
    "stanford_cars": "photographs of 196 models of cars",
    "sun397": "photographs of 397 kinds of scene",
    "cgqa": "CFST's published pairs of concepts, from GQA",
    "cobj": "CFST's published pairs of objects, from Objects365",
    "cpin": "CFST's parts of things, from PartImageNet, as its authors lay them out",
    "cl_benchmark": "O-LoRA's fifteen text classifications as instructions",
    "coin": "eight tasks of instructions with pictures, in LLaVA's JSON",
    "ucit": "six tasks of instructions with pictures, in LLaVA's JSON, two of them captions",
}

DATASETS: dict[str, Line] = {n: Line(f"holdfast.datasets.{n}:DATASET", told) for n, told in _DATASETS.items()}

WRITERS: dict[str, Line] = {n: Line(f"holdfast.world.writers.{n}:write", told) for n, told in _DATASETS.items()}

MODELS: dict[str, Line] = {
    "perceptron": Line("holdfast.models.perceptron:Perceptron", "fully connected layers over pixels"),
    "vilt": Line("holdfast.models.vilt:Vilt", "text and image patches in one sequence, 12 x 768"),
    "vilt-tiny": Line("holdfast.models.vilt:TinyVilt", "the same for two CPU cores, 3 x 64"),
    "bert": Line("holdfast.models.bert:Bert", "text alone, 12 x 768"),
    "bert-tiny": Line("holdfast.models.bert:TinyBert", "the same for two CPU cores"),
    "vault": Line("holdfast.models.vault:Vault", "ViLT whose words come from a frozen BERT"),
    "vault-tiny": Line("holdfast.models.vault:TinyVault", "the same for two CPU cores"),
    "uniter": Line("holdfast.models.uniter:Uniter", "text and region features in one sequence, 12 x 768"),
    "uniter-tiny": Line("holdfast.models.uniter:TinyUniter", "the same for two CPU cores"),
    "vlbert": Line("holdfast.models.vlbert:VLBert", "VisCOLL's VL-BERT over region features, 6 x 384"),
    "vlbert-tiny": Line("holdfast.models.vlbert:TinyVLBert", "the same for two CPU cores"),
    "lxmert": Line("holdfast.models.lxmert:Lxmert", "text and regions that attend to each other, 9/5/5 x 384"),
    "lxmert-tiny": Line("holdfast.models.lxmert:TinyLxmert", "the same for two CPU cores"),
    "san": Line("holdfast.models.san:San", "LSTM, feature map and two stacked attentions"),
    "san-tiny": Line("holdfast.models.san:TinySan", "the same over small pictures, for two CPU cores"),
    "resnet18": Line("holdfast.models.resnet:ResNet18", "CFST's ResNet-18 and its CIFAR variant"),
    "resnet18-tiny": Line("holdfast.models.resnet:TinyResNet18", "a slim one for two CPU cores"),
    "efficientnet-lite0": Line("holdfast.models.efficientnet:EfficientNetLite0", "for photographs, 1280 wide"),
    "vit": Line("holdfast.models.vit:Vit", "CFST's ViT, 9 x 384"),
    "modular-resnet18": Line("holdfast.models.modular:ModularResNet18", "ResNet-18 of modules, for rpsnet and mntdp"),
    "modular-vit": Line("holdfast.models.modular:ModularVit", "ViT of modules, for rpsnet and mntdp"),
    "modular-perceptron": Line(
        "holdfast.models.modular:ModularPerceptron", "a perceptron of modules, the smallest modular network"
    ),
    "vit-tiny": Line("holdfast.models.vit:TinyVit", "the same for two CPU cores"),
    "dual": Line("holdfast.models.dual:Dual", "an image tower and a text tower in one space, as in CLIP"),
    "dual-tiny": Line("holdfast.models.dual:TinyDual", "the same for two CPU cores, aligned on the synthetic world"),
    "prefix-lm": Line(
        "holdfast.models.prefix_lm:PrefixLm", "a language model that writes after a prefix of image features, 12 x 768"
    ),
    "prefix-lm-tiny": Line("holdfast.models.prefix_lm:TinyPrefixLm", "the same for two CPU cores, 3 x 64"),
    "hf": Line("holdfast.models.huggingface:HuggingFace", "any encoder or writer in Hugging Face's format: hf:FOLDER"),
}

ALGORITHMS: dict[str, Line] = {
    "frozen-encoder": Line("holdfast.algorithms.frozen:FrozenEncoder", "only the heads learn"),
    "frozen-towers": Line(
        "holdfast.algorithms.frozen:FrozenTowers",
        "only the maps that join a dual encoder's towers learn, and the heads",
    ),
    "frozen-bottom": Line(
        "holdfast.algorithms.frozen:FrozenBottom",
        "the embeddings and the lowest k layers are frozen",
        rows={"frozen-bottom-K": ("k", "K")},
    ),
    "adapters": Line("holdfast.algorithms.adapters:Adapters", "small bottlenecks for each head; the encoder is frozen"),
    "lora": Line("holdfast.algorithms.lora:LowRank", "low-rank additions for each head; the encoder is frozen"),
    "l2p": Line("holdfast.algorithms.l2p:L2P", "prompts of a pool for each example, by the nearest keys"),
    "coda-prompt": Line("holdfast.algorithms.coda_prompt:CodaPrompt", "prompts as weighted sums of components"),
    "o-lora": Line("holdfast.algorithms.o_lora:OLora", "merged low-rank updates in orthogonal subspaces"),
    "inflora": Line(
        "holdfast.algorithms.inflora:InfLora", "merged low-rank updates in directions that past stages did not read"
    ),
    "adapter-library": Line(
        "holdfast.algorithms.adapter_library:AdapterLibrary", "adapters for each stage, chosen for each example"
    ),
    "ease": Line("holdfast.algorithms.ease:Ease", "adapters for each stage, and classes' means in all their features"),
    "replay": Line(
        "holdfast.algorithms.replay:Replay",
        "kept examples join each batch, or get their own step",
        ("er",),
        {"balanced-sqrt": ("memory", "balanced-sqrt"), "balanced-forget": ("memory", "balanced-forget")},
    ),
    "rehearsal": Line(
        "holdfast.algorithms.rehearsal:Rehearsal", "examples of earlier stages are mixed into the next stage's data"
    ),
    "derpp": Line(
        "holdfast.algorithms.derpp:DarkReplay", "kept examples are learned again, by target and by old logits"
    ),
    "er-ace": Line(
        "holdfast.algorithms.er_ace:AsymmetricReplay", "replay; new examples compete with their own classes"
    ),
    "gdumb": Line("holdfast.algorithms.gdumb:GDumb", "trains from scratch on a balanced memory at each stage"),
    "ewc": Line("holdfast.algorithms.ewc:EWC", "anchors weights by their Fisher information on past stages"),
    "si": Line("holdfast.algorithms.si:SI", "anchors weights whose movement lowered past losses"),
    "mas": Line("holdfast.algorithms.mas:MAS", "anchors weights to which the outputs are sensitive"),
    "lwf": Line("holdfast.algorithms.lwf:LwF", "the last stage's model teaches the new one on the new data"),
    "simplecil": Line("holdfast.algorithms.simplecil:SimpleCil", "frozen encoder; the class of the most similar mean"),
    "slda": Line("holdfast.algorithms.slda:SLDA", "frozen encoder; linear discriminant analysis of streamed sums"),
    "ranpac": Line("holdfast.algorithms.ranpac:RanPAC", "frozen encoder; ridge regression on random projections"),
    "icarl": Line("holdfast.algorithms.icarl:ICarl", "exemplars, distilled sigmoids, and their nearest mean"),
    "wa": Line("holdfast.algorithms.wa:WeightAlignment", "exemplars, distillation, and aligned lengths of weights"),
    "wise-ft": Line("holdfast.algorithms.wise_ft:WiseFT", "after each stage, weights between the new and the old ones"),
    "zscl": Line(
        "holdfast.algorithms.zscl:Zscl", "the first model teaches on reference data, and weights are averaged"
    ),
    "ties": Line("holdfast.algorithms.ties:Ties", "averages the large changes of the stages where signs agree"),
    "magmax": Line("holdfast.algorithms.magmax:MagMax", "each weight takes its largest change over the stages"),
    "agem": Line(
        "holdfast.algorithms.agem:AGem", "steps that would raise the loss of kept examples are projected", ("a-gem",)
    ),
    "gem": Line("holdfast.algorithms.gem:Gem", "steps are projected so that no past stage's loss rises"),
    "mir": Line(
        "holdfast.algorithms.mir:Mir",
        "replays the kept examples that a step would harm most",
        ("er-mir",),
        {"mir-max": ("by", "max"), "er-mir-max": ("by", "max")},
    ),
    "rpsnet": Line("holdfast.algorithms.rpsnet:RpsNet", "the best of several random paths of modules, with replay"),
    "mntdp": Line("holdfast.algorithms.mntdp:Mntdp", "a path of frozen modules for each task, grown from the top down"),
}

PLAIN: dict[str, Line] = {
    "finetune": Line("", "plain fine-tuning: no algorithm at all", ("seqft", "naive", "vanilla")),
}

TRANSFORMS: dict[str, Line] = {
    "joint": Line(
        "holdfast.data.streams:joint",
        "all stages at once, in random order: the usual upper bound",
        ("multitask", "offline-one-pass", "iid-online"),
    ),
    "offline": Line("holdfast.data.streams:offline", "joint training for ten times as many epochs"),
    "cumulative": Line("holdfast.data.streams:cumulative", "each stage with the data of all earlier ones"),
}


MEMORIES: dict[str, Line] = {
    "reservoir": Line("holdfast.memory:Reservoir", "a uniform sample of all examples seen"),
    "per-task": Line("holdfast.memory:PerTask", "a number, or a share, of each finished stage's examples"),
    "experience-balanced": Line("holdfast.memory:ExperienceBalanced", "an equal share for each finished stage"),
    "class-balanced": Line("holdfast.memory:ClassBalanced", "as equal a number of each class or task as possible"),
    "balanced-sqrt": Line("holdfast.memory:TargetBalanced", "groups by the square root of their frequency"),
    "balanced-forget": Line("holdfast.memory:TargetBalanced", "groups by how much of them was forgotten"),
}
"""The memories that `replay.memory` names."""
