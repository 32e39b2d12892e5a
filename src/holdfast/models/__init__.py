"""The built-in models, as classes whose fields are their sizes, and what they are made of."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.models.bert import Bert, TinyBert
    from holdfast.models.efficientnet import EfficientNetLite0
    from holdfast.models.huggingface import HuggingFace
    from holdfast.models.lxmert import Lxmert, TinyLxmert
    from holdfast.models.modular import ModularPerceptron, ModularResNet18, ModularVit
    from holdfast.models.perceptron import Perceptron
    from holdfast.models.resnet import ResNet18, TinyResNet18
    from holdfast.models.san import San, TinySan
    from holdfast.models.uniter import TinyUniter, Uniter
    from holdfast.models.vault import TinyVault, Vault
    from holdfast.models.vilt import TinyVilt, Vilt
    from holdfast.models.vit import TinyVit, Vit
    from holdfast.models.vlbert import TinyVLBert, VLBert

_PLACES = {
    "Bert": "bert",
    "EfficientNetLite0": "efficientnet",
    "HuggingFace": "huggingface",
    "Lxmert": "lxmert",
    "ModularPerceptron": "modular",
    "ModularResNet18": "modular",
    "ModularVit": "modular",
    "Perceptron": "perceptron",
    "ResNet18": "resnet",
    "San": "san",
    "TinyBert": "bert",
    "TinyLxmert": "lxmert",
    "TinyResNet18": "resnet",
    "TinySan": "san",
    "TinyUniter": "uniter",
    "TinyVLBert": "vlbert",
    "TinyVault": "vault",
    "TinyVilt": "vilt",
    "TinyVit": "vit",
    "Uniter": "uniter",
    "VLBert": "vlbert",
    "Vault": "vault",
    "Vilt": "vilt",
    "Vit": "vit",
}

__all__ = [
    "Bert",
    "EfficientNetLite0",
    "HuggingFace",
    "Lxmert",
    "ModularPerceptron",
    "ModularResNet18",
    "ModularVit",
    "Perceptron",
    "ResNet18",
    "San",
    "TinyBert",
    "TinyLxmert",
    "TinyResNet18",
    "TinySan",
    "TinyUniter",
    "TinyVLBert",
    "TinyVault",
    "TinyVilt",
    "TinyVit",
    "Uniter",
    "VLBert",
    "Vault",
    "Vilt",
    "Vit",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'holdfast.models' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"holdfast.models.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
