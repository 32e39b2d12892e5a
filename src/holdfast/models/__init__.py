"""The built-in models, as classes whose fields are their sizes, and the parts for a model of your own.

`Encoder`, `TransformerBlock`, `Attachable` and `Wants` are for a model of your own; `of` turns a module, its class or a
function that builds one into a `Model`, and `Network` is what a `Model` builds: see docs/add-a-model.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.models.adapters import Attachable
    from holdfast.models.base import Encoder, Network
    from holdfast.models.bert import Bert, TinyBert
    from holdfast.models.dual import Dual, TinyDual
    from holdfast.models.efficientnet import EfficientNetLite0
    from holdfast.models.huggingface import HuggingFace
    from holdfast.models.lxmert import Lxmert, TinyLxmert
    from holdfast.models.modular import ModularPerceptron, ModularResNet18, ModularVit
    from holdfast.models.module import of
    from holdfast.models.perceptron import Perceptron
    from holdfast.models.prefix_lm import PrefixLm, TinyPrefixLm
    from holdfast.models.resnet import ResNet18, TinyResNet18
    from holdfast.models.san import San, TinySan
    from holdfast.models.transformer import TransformerBlock
    from holdfast.models.uniter import TinyUniter, Uniter
    from holdfast.models.vault import TinyVault, Vault
    from holdfast.models.vilt import TinyVilt, Vilt
    from holdfast.models.vit import TinyVit, Vit
    from holdfast.models.vlbert import TinyVLBert, VLBert
    from holdfast.types import Wants

_PLACES = {
    "Attachable": "adapters",
    "Bert": "bert",
    "Dual": "dual",
    "EfficientNetLite0": "efficientnet",
    "Encoder": "base",
    "HuggingFace": "huggingface",
    "Lxmert": "lxmert",
    "ModularPerceptron": "modular",
    "ModularResNet18": "modular",
    "ModularVit": "modular",
    "Network": "base",
    "Perceptron": "perceptron",
    "PrefixLm": "prefix_lm",
    "ResNet18": "resnet",
    "San": "san",
    "TinyBert": "bert",
    "TinyDual": "dual",
    "TinyLxmert": "lxmert",
    "TinyPrefixLm": "prefix_lm",
    "TinyResNet18": "resnet",
    "TinySan": "san",
    "TinyUniter": "uniter",
    "TinyVLBert": "vlbert",
    "TinyVault": "vault",
    "TinyVilt": "vilt",
    "TinyVit": "vit",
    "TransformerBlock": "transformer",
    "Uniter": "uniter",
    "VLBert": "vlbert",
    "Vault": "vault",
    "Vilt": "vilt",
    "Vit": "vit",
    "Wants": "base",
    "of": "module",
}

__all__ = [
    "Attachable",
    "Bert",
    "Dual",
    "EfficientNetLite0",
    "Encoder",
    "HuggingFace",
    "Lxmert",
    "ModularPerceptron",
    "ModularResNet18",
    "ModularVit",
    "Network",
    "Perceptron",
    "PrefixLm",
    "ResNet18",
    "San",
    "TinyBert",
    "TinyDual",
    "TinyLxmert",
    "TinyPrefixLm",
    "TinyResNet18",
    "TinySan",
    "TinyUniter",
    "TinyVLBert",
    "TinyVault",
    "TinyVilt",
    "TinyVit",
    "TransformerBlock",
    "Uniter",
    "VLBert",
    "Vault",
    "Vilt",
    "Vit",
    "Wants",
    "of",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'holdfast.models' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"holdfast.models.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
