"""The benchmark `folder`: pictures of a user's own, as class/picture or domain/class/picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.benchmarks.folder.listing import list_folder
from holdfast.benchmarks.own.benchmark import OwnData
from holdfast.benchmarks.own.listing import Listed
from holdfast.errors import UserError


@dataclass(frozen=True)
class FolderData(OwnData):
    """Pictures of a user's own, in a folder for each class, learned in stages."""

    data: str = ""
    """The folder: class/picture, or with splits train/class/picture and test/class/picture."""
    by: Literal["class", "domain"] = "class"
    """What each stage adds: new classes, or the same classes in a new domain, from domain/class/picture."""

    @property
    def title(self) -> str:
        """The name of the folder."""
        return Path(self.data).name or self.data

    @property
    def source(self) -> Path:
        """The path of the folder."""
        return Path(self.data)

    @property
    def sees(self) -> Literal["image"]:
        """The kind of input: pictures."""
        return "image"

    def listing(self) -> Listed:
        """The pictures of all classes."""
        if not self.data:
            raise UserError("which folder? Give the one that holds a folder for each class: --data photos")
        return list_folder(Path(self.data), self.by == "domain", self.skip_bad)
