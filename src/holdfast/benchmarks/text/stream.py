"""The orders of tasks that the paper compares, and the prompts."""

from __future__ import annotations

from holdfast.datasets.cl_benchmark import KINDS
from holdfast.errors import UserError, nearest
from holdfast.types import Example

ORDERS = {
    "1": ("dbpedia", "amazon", "yahoo", "agnews"),
    "2": ("dbpedia", "amazon", "agnews", "yahoo"),
    "3": ("yahoo", "amazon", "agnews", "dbpedia"),
    "4": (
        *("MNLI", "CB", "WiC", "COPA", "QQP", "BoolQA", "RTE", "IMDB", "yelp", "amazon", "SST-2", "dbpedia"),
        *("agnews", "MultiRC", "yahoo"),
    ),
    "5": (
        *("MultiRC", "BoolQA", "WiC", "MNLI", "CB", "COPA", "QQP", "RTE", "IMDB", "SST-2", "dbpedia", "agnews"),
        *("yelp", "amazon", "yahoo"),
    ),
    "6": (
        *("yelp", "amazon", "MNLI", "CB", "COPA", "QQP", "RTE", "IMDB", "SST-2", "dbpedia", "agnews", "yahoo"),
        *("MultiRC", "BoolQA", "WiC"),
    ),
}
"""The paper's: three of four tasks, three of all fifteen."""


def tasks_of(order: str) -> tuple[str, ...]:
    """The tasks of an order: 1 to 6, or names with `>` between them.

    >>> tasks_of("1"), tasks_of("CB > RTE"), [len(tasks_of(order)) for order in "456"]
    (('dbpedia', 'amazon', 'yahoo', 'agnews'), ('CB', 'RTE'), [15, 15, 15])
    """
    if order in ORDERS:
        return ORDERS[order]
    names = tuple(name.strip() for name in order.split(">"))
    for name in names:
        if name not in KINDS:
            raise UserError(f"benchmark.order is {order!r}, with the unknown task {name!r}: {nearest(name, KINDS)}")
    if len(set(names)) < len(names):
        raise UserError(f"benchmark.order is {order!r}: name each task once")
    return names


def prompt(example: Example, layout: str = "paper") -> str:
    """The prompt of an example: as the authors lay it out, or brief, with the labels after the text.

    >>> extra = {"task": "CB", "kind": "NLI", "instruction": "Which?\\n"}
    >>> asked = Example("a", "yes", text="sentence 1: ...", choices=("yes", "no"), extra=extra)
    >>> print(prompt(asked))
    Task:NLI
    Dataset:CB
    Which?
    Option: yes, no
    sentence 1: ...
    Answer:
    >>> print(prompt(asked, "brief"))
    sentence 1: ...
    Option: yes, no
    Answer:
    """
    extra, options = example.extra, f"Option: {', '.join(example.choices)} \n"
    if layout == "brief":
        return f"{example.text.rstrip()}\n{options}Answer:"
    # COPA's sentences include their question and its options.
    asked = "" if extra["kind"] == "COPA" else f"{extra['instruction']}{options}"
    return f"Task:{extra['kind']}\nDataset:{extra['task']}\n{asked}{example.text}\nAnswer:"
