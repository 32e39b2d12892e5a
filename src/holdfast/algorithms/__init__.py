"""What acts against forgetting: the built-in algorithms, as classes whose fields are their settings.

For an algorithm of your own there are `TRAITS`, `refuse_trait` and `refuse_accumulation`: see docs/add-an-algorithm.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.algorithms.adapter_library import AdapterLibrary
    from holdfast.algorithms.adapters import Adapters
    from holdfast.algorithms.agem import AGem
    from holdfast.algorithms.base import TRAITS, refuse_accumulation, refuse_trait
    from holdfast.algorithms.coda_prompt import CodaPrompt
    from holdfast.algorithms.derpp import DarkReplay
    from holdfast.algorithms.ease import Ease
    from holdfast.algorithms.er_ace import AsymmetricReplay
    from holdfast.algorithms.ewc import EWC
    from holdfast.algorithms.finetune import Finetune
    from holdfast.algorithms.frozen import FrozenBottom, FrozenEncoder, FrozenTowers
    from holdfast.algorithms.gdumb import GDumb
    from holdfast.algorithms.gem import Gem
    from holdfast.algorithms.icarl import ICarl
    from holdfast.algorithms.inflora import InfLora
    from holdfast.algorithms.l2p import L2P
    from holdfast.algorithms.lora import LowRank
    from holdfast.algorithms.lwf import LwF
    from holdfast.algorithms.magmax import MagMax
    from holdfast.algorithms.mas import MAS
    from holdfast.algorithms.mir import Mir
    from holdfast.algorithms.mntdp import Mntdp
    from holdfast.algorithms.o_lora import OLora
    from holdfast.algorithms.ranpac import RanPAC
    from holdfast.algorithms.rehearsal import Rehearsal
    from holdfast.algorithms.replay import Replay
    from holdfast.algorithms.rpsnet import RpsNet
    from holdfast.algorithms.si import SI
    from holdfast.algorithms.simplecil import SimpleCil
    from holdfast.algorithms.slda import SLDA
    from holdfast.algorithms.ties import Ties
    from holdfast.algorithms.wa import WeightAlignment
    from holdfast.algorithms.wise_ft import WiseFT
    from holdfast.algorithms.zscl import Zscl

_PLACES = {
    "AGem": "agem",
    "AdapterLibrary": "adapter_library",
    "Adapters": "adapters",
    "AsymmetricReplay": "er_ace",
    "CodaPrompt": "coda_prompt",
    "DarkReplay": "derpp",
    "EWC": "ewc",
    "Ease": "ease",
    "Finetune": "finetune",
    "FrozenBottom": "frozen",
    "FrozenEncoder": "frozen",
    "FrozenTowers": "frozen",
    "GDumb": "gdumb",
    "Gem": "gem",
    "InfLora": "inflora",
    "L2P": "l2p",
    "LowRank": "lora",
    "LwF": "lwf",
    "MAS": "mas",
    "MagMax": "magmax",
    "Mir": "mir",
    "Mntdp": "mntdp",
    "OLora": "o_lora",
    "Rehearsal": "rehearsal",
    "Replay": "replay",
    "RpsNet": "rpsnet",
    "SI": "si",
    "TRAITS": "base",
    "Ties": "ties",
    "ICarl": "icarl",
    "RanPAC": "ranpac",
    "SimpleCil": "simplecil",
    "SLDA": "slda",
    "WeightAlignment": "wa",
    "WiseFT": "wise_ft",
    "Zscl": "zscl",
    "refuse_accumulation": "base",
    "refuse_trait": "base",
}

__all__ = [
    "EWC",
    "L2P",
    "MAS",
    "SI",
    "SLDA",
    "TRAITS",
    "AGem",
    "AdapterLibrary",
    "Adapters",
    "AsymmetricReplay",
    "CodaPrompt",
    "DarkReplay",
    "Ease",
    "Finetune",
    "FrozenBottom",
    "FrozenEncoder",
    "FrozenTowers",
    "GDumb",
    "Gem",
    "ICarl",
    "InfLora",
    "LowRank",
    "LwF",
    "MagMax",
    "Mir",
    "Mntdp",
    "OLora",
    "RanPAC",
    "Rehearsal",
    "Replay",
    "RpsNet",
    "SimpleCil",
    "Ties",
    "WeightAlignment",
    "WiseFT",
    "Zscl",
    "refuse_accumulation",
    "refuse_trait",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'holdfast.algorithms' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"holdfast.algorithms.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
