"""What a benchmark and a reader of your own are written with.

| for                            | words                                                                              |
|--------------------------------|------------------------------------------------------------------------------------|
| a benchmark of stages you make | `in_stages`, and `Inputs` where there is more than pictures                        |
| any other benchmark            | `Setup`, `Data`, `Table`, `Inputs`, `Protocol`, `EvaluationSet`, `Score`, `Need`   |
| a reader of a dataset's files  | `Dataset`, `Reading`, `Example`                                                    |
| a kind of task                 | `Head`, if it does not classify                                                    |
"""

from holdfast.benchmarks.base import Need, Setup
from holdfast.benchmarks.stages import in_stages
from holdfast.data.table import Data, Table
from holdfast.datasets.base import Dataset, Reading
from holdfast.types import EvaluationSet, Example, Head, Inputs, Protocol, Score

__all__ = [
    "Data",
    "Dataset",
    "EvaluationSet",
    "Example",
    "Head",
    "Inputs",
    "Need",
    "Protocol",
    "Reading",
    "Score",
    "Setup",
    "Table",
    "in_stages",
]
