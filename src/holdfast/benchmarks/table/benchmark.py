"""The benchmark `table`: rows of a user's own, of pictures, texts or both, each with one right answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from holdfast.benchmarks.own.benchmark import OwnData
from holdfast.benchmarks.own.listing import Listed
from holdfast.benchmarks.table.files import columns_in, find_tables, limits_of
from holdfast.benchmarks.table.listing import Columns, list_table
from holdfast.errors import UserError
from holdfast.files import within


@dataclass(frozen=True)
class TableData(OwnData):
    """Rows of a user's own table, learned in stages."""

    places: ClassVar[frozenset[str]] = OwnData.places | {"images"}

    data: str = ""
    """A CSV, TSV, JSON, JSON lines or Parquet file, a folder with one for each split, or a saved dataset of Hugging
    Face."""
    target: str = ""
    """The column with the answers."""
    image: str = ""
    """The column with the pictures: names of files, or the pictures themselves."""
    text: str = ""
    """The column with the texts."""
    by: str = "class"
    """What each stage adds: new classes, or the rows with another value of this column, such as a topic or a year."""
    split: str = ""
    """The column that says train, validation or test."""
    group: str = ""
    """Rows with one value of this column are never in two splits; by default the picture or, without one, the text."""
    images: str = ""
    """The folder of the pictures; by default the folder of the table."""

    @property
    def title(self) -> str:
        """The name of the file or folder."""
        return Path(self.data).name or self.data

    @property
    def source(self) -> Path:
        """The path of the file or folder."""
        return Path(self.data)

    @property
    def sees(self) -> Literal["image", "text", "both"]:
        """The kinds of input in the columns."""
        return "both" if self.image and self.text else "image" if self.image else "text"

    def listing(self) -> Listed:
        """The rows."""
        if not self.data:
            raise UserError("which table? Give a file or a folder: --data qa.csv")
        with within(limits_of(Path(self.data))):
            return self._listing(Path(self.data))

    def _listing(self, data: Path) -> Listed:
        if not self.target or not (self.image or self.text):
            missing = "target to the column with the answers" if not self.target else "image or benchmark.text, or both"
            names = ", ".join(columns_in(find_tables(data)[0].path))
            raise UserError(f"set benchmark.{missing}: the columns of {data} are {names}")
        by = "" if self.by == "class" else self.by
        columns = Columns(self.target, self.image, self.text, by, self.split, self.group)
        return list_table(data, columns, self.images, self.skip_bad)
