"""How each derived cell of the published tables follows from other printed numbers."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from holdfast.metrics import forgetting_transfer, harmonic_mean, knowledge_transfer, low_shot_transfer, related_score
from holdfast.papers.published import Cell, PublishedTable
from holdfast.papers.rounding import Printed, between, exactly, printed, recompute

Row = Mapping[str, Cell]
Library = Mapping[str, PublishedTable]  # the tables of one paper by number

RULES = {
    "knowledge-transfer": "100 (score - direct) / (direct - chance), chance as printed or as 100 / labels",
    "forgetting-transfer": "100 (before - after) / (before - chance), chance as printed or as 100 / labels",
    "low-shot-transfer": "100 (score - direct) / (direct - chance) of low-shot scores, chance as above",
    "chance": "100 / the number of answers to choose from",
    "harmonic-mean": "the harmonic mean of accuracies: hn of sys, pro (and sub), hr of non and noc, ha of all",
    "related-score": "100 (sys - non) / non, on fresh (f) or on old (o) concepts",
    "mean": "the mean over all datasets, or all orders, of a row",
    "row-total": "the number of questions of one type, as in most tables of the paper: all use the same test set",
    "mean-per-task": "the instances of all splits together / tasks; the paper does not say which splits it means",
    "released-length": "the mean number of masked words in the released validation and test phrases",
    "difference": "the upper bound of a network minus the accuracy of a method",
    "backward-transfer": "the mean after the last task minus the mean after each, times tasks / (tasks - 1)",
    "repeated": "the same quantity in an earlier table",
}
_RELEASED_LENGTHS = {"coco-shift": (2.492, 2.500), "flickr-shift": (2.373, 2.385)}
"""Counted in the released validation and test files: word pieces of COCO-shift, words of Flickr-shift."""


@dataclass(frozen=True)
class Check:
    """One printed cell, compared with the value that other printed numbers imply.

    `low` to `high` is the range of the rule over all unrounded inputs, and `mid` its value on the inputs as printed;
    `difference` is printed minus mid. The cell is consistent if the interval that contains its own unrounded value
    overlaps `low` to `high`.

    >>> found = verify("p", "1", {"task": "vcr"}, "sum", "repeated", printed(2.5, 1), exactly(2.6))
    >>> found.consistent, found.difference
    (False, -0.1)
    """

    paper: str
    table: str
    keys: tuple[tuple[str, Cell], ...]
    column: str
    rule: str
    printed: float
    low: float
    high: float
    mid: float
    consistent: bool
    difference: float


def verify(paper: str, table: str, keys: Row, column: str, rule: str, cell: Printed, recomputed: Printed) -> Check:
    """Compare a printed cell with its recomputed value.

    >>> verify("p", "1", {}, "sum", "repeated", printed(2.5, 1), exactly(2.54)).consistent
    True
    """
    assert rule in RULES, rule
    return Check(
        paper=paper,
        table=table,
        keys=tuple(keys.items()),
        column=column,
        rule=rule,
        printed=cell.value,
        low=recomputed.low,
        high=recomputed.high,
        mid=recomputed.value,
        consistent=cell.meets(recomputed),
        # Nine decimals hide floating-point noise, and nothing that a paper prints.
        difference=round(cell.value - recomputed.value, 9),
    )


def climb(library: Library) -> Iterator[Check]:
    """Transfer, forgetting and chance in CLiMB, and the numbers that it prints twice.

    >>> from holdfast.papers import tables
    >>> checks = list(climb({each.number: each for each in tables("climb")}))
    >>> sum(check.rule == "knowledge-transfer" for check in checks)
    56
    """
    chance = _chance_scores(library["4"])

    for number, baseline in (("3", "algorithm"), ("9a", "order"), ("13", "algorithm")):
        if number not in library:  # the tables of the earlier version end with 12
            continue
        table = library[number]
        direct = {row["task"]: _cell(table, row, "score") for row in table.select(**{baseline: "direct"})}
        for row in _having(table, "transfer"):
            inputs = _cell(table, row, "score"), direct[row["task"]], chance[row["task"]]
            yield _derived(table, row, "transfer", "knowledge-transfer", knowledge_transfer, *inputs)

    for number, run in (("8", "algorithm"), ("9b", "order")):
        table = library[number]
        before = {(row[run], row["task"]): _cell(table, row, "score") for row in table if row["after"] == row["task"]}
        for row in _having(table, "forgetting"):
            inputs = before[row[run], row["task"]], _cell(table, row, "score"), chance[row["task"]]
            yield _derived(table, row, "forgetting", "forgetting-transfer", forgetting_transfer, *inputs)

    table = library["10"]
    direct = {row["task"]: _cell(table, row, "score") for row in table.select(algorithm="direct", data="low-shot")}
    for row in _having(table, "transfer"):
        inputs = _cell(table, row, "score"), direct[row["task"]], chance[row["task"]]
        yield _derived(table, row, "transfer", "low-shot-transfer", low_shot_transfer, *inputs)

    for row in library["4"]:
        yield _derived(library["4"], row, "chance", "chance", _chance_of, _exact(row["labels"]))
    for row in library["12"].select(algorithm="random"):
        answers = _answers(str(library["1"].value("decision", task=row["task"])))
        yield _derived(library["12"], row, "score", "chance", _chance_of, exactly(answers))

    yield from _climb_repeats(library)


def _climb_repeats(library: Library) -> Iterator[Check]:
    knowledge, forgetting = library["3"], library["8"]
    standard = "vqav2>nlvr2>snli-ve>vcr"
    for row in library["6"].select(model="vilt"):
        yield _repeated(library["6"], row, "score", knowledge, algorithm="direct", task=row["task"])
    for row in library["7"].select(model="vilt", task="imdb"):
        for column in ("accuracy", "deviation"):
            again: dict[str, Cell] = {"tokens": 160, "image": "average", "shots": row["shots"]}
            yield _repeated(library["7"], row, column, library["5"], **again)
    for row in forgetting:
        if row["after"] == row["task"]:
            yield _repeated(forgetting, row, "score", knowledge, algorithm=row["algorithm"], task=row["task"])
    orders = library["9a"]
    for row in orders.select(order="direct"):
        yield _repeated(orders, row, "score", knowledge, algorithm="direct", task=row["task"])
    for row in orders.select(order=standard):
        for column in ("transfer", "score"):
            yield _repeated(orders, row, column, knowledge, algorithm="seqft", task=row["task"])
    for row in library["9b"]:
        if row["order"] == standard:
            for column in ("forgetting", "score"):
                if row[column] is not None:
                    again = {"algorithm": "seqft", "task": row["task"], "after": row["after"]}
                    yield _repeated(library["9b"], row, column, forgetting, **again)
        elif row["after"] == row["task"]:
            yield _repeated(library["9b"], row, "score", orders, order=row["order"], task=row["task"])
    for row in library["10"].select(algorithm="direct", data="full"):
        yield _repeated(library["10"], row, "score", knowledge, algorithm="direct", task=row["task"])
    for row in library["12"].select(algorithm="direct"):
        other = library["7"].value("accuracy", model="vilt", task=row["task"], shots=row["shots"])
        yield _against(library["12"], row, "score", "repeated", _exact(other))


def viscoll(library: Library) -> Iterator[Check]:
    """The sizes of tasks and phrases in VisCOLL, and the results that it prints twice.

    >>> from holdfast.papers import tables
    >>> checks = list(viscoll({each.number: each for each in tables("viscoll")}))
    >>> [(check.keys[0][1], check.column) for check in checks if not check.consistent]
    [('coco-shift', 'mean_instances_per_task'), ('flickr-shift', 'mean_masked_length')]
    """
    sizes = library["1"]
    splits = ("training", "validation", "regular_test", "compositional_test")
    for row in sizes:
        counts = [row[f"{split}_instances"] for split in splits]
        total = sum(_number(count) for count in counts if count is not None)
        mean = exactly(total / _number(row["tasks"]))
        yield _against(sizes, row, "mean_instances_per_task", "mean-per-task", mean)
        length = between(*_RELEASED_LENGTHS[str(row["dataset"])])
        yield _against(sizes, row, "mean_masked_length", "released-length", length)
    for row in library["5"].select(order="random"):
        again = {"model": "vlbert", "dataset": "coco-shift", "method": row["method"], "memory": row["memory"]}
        yield _repeated(library["5"], row, "log_perplexity", library["2"], **again)


def clvqa(library: Library) -> Iterator[Check]:
    """The rows of the confusion tables: each one counts all test questions of one type.

    >>> from holdfast.papers import tables
    >>> checks = list(clvqa({each.number: each for each in tables("clvqa")}))
    >>> [(check.table, check.difference) for check in checks if not check.consistent]
    [('1', -1), ('5', -9), ('6', 51), ('10', -1142)]
    """
    totals: dict[tuple[str, Cell], int] = collections.Counter()
    names: dict[tuple[str, Cell], Row] = {}
    for table in library.values():
        if "question_type" not in table.keys:
            continue
        for row in table:
            place = table.number, row["question_type"]
            totals[place] += int(_number(row["count"]))
            names[place] = {name: row[name] for name in ("method", "setup", "question_type")}
    for (number, question_type), total in totals.items():
        same = [other for (_, kind), other in totals.items() if kind == question_type]
        usual = collections.Counter(same).most_common(1)[0][0]
        keys = names[number, question_type]
        yield verify("clvqa", number, keys, "count", "row-total", exactly(total), exactly(usual))


def cfst(library: Library) -> Iterator[Check]:
    """The harmonic means of CFST over novel, reference and all few-shot tests, and Figure 7's related scores.

    >>> from holdfast.papers import tables
    >>> checks = list(cfst({each.number: each for each in tables("cfst")}))
    >>> sorted({check.column for check in checks})
    ['ha', 'hn', 'hr', 's_f', 's_o']
    """
    for table in library.values():
        names = [column.name for column in table.columns]
        for group in [name[-1] for name in names if name in ("s_f", "s_o")]:
            for row in table:
                inputs = [_cell(table, row, f"{part}_{group}") for part in ("sys", "non")]
                yield _derived(table, row, f"s_{group}", "related-score", _related_score, *inputs)
        if "ha" not in names:  # Split-CIFAR100 has no few-shot tests
            continue
        novel = [name for name in ("sys", "pro", "sub") if name in names]
        seen = ["non", "noc"]
        for row in table:
            for column, parts in (("hn", novel), ("hr", seen), ("ha", novel + seen)):
                inputs = [_cell(table, row, part) for part in parts]
                yield _derived(table, row, column, "harmonic-mean", _harmonic_mean, *inputs)


def zscl(library: Library) -> Iterator[Check]:
    """The means over datasets of ZSCL's three measures.

    >>> from holdfast.papers import tables
    >>> checks = list(zscl({each.number: each for each in tables("zscl")}))
    >>> len(checks), [check.keys for check in checks if not check.consistent]
    (42, [])
    """
    for table in library.values():
        for row in table.select(dataset="mean"):
            same = table.select(method=row["method"], measure=row["measure"])
            inputs = [_cell(table, each, "accuracy") for each in same if each["dataset"] != "mean"]
            yield _derived(table, row, "accuracy", "mean", _mean, *inputs)


def o_lora(library: Library) -> Iterator[Check]:
    """The means over three orders of tasks.

    >>> from holdfast.papers import tables
    >>> checks = list(o_lora({each.number: each for each in tables("o-lora")}))
    >>> len(checks), [(dict(check.keys)["method"], check.printed) for check in checks if not check.consistent]
    (24, [('l2p', 60.7)])
    """
    for table in library.values():
        for group in ("1-3", "4-6"):
            first, last = (int(number) for number in group.split("-"))
            for row in table.select(order=group):
                orders = [table.select(method=row["method"], order=order) for order in range(first, last + 1)]
                inputs = [_cell(table, next(iter(each)), "accuracy") for each in orders]
                yield _derived(table, row, "accuracy", "mean", _mean, *inputs)


def _mean(*values: float) -> float:
    return sum(values) / len(values)


def l2p(library: Library) -> Iterator[Check]:
    """The distances from the upper bound in L2P, and the results that it prints twice.

    >>> from holdfast.papers import tables
    >>> checks = list(l2p({each.number: each for each in tables("l2p")}))
    >>> len(checks), [check.keys for check in checks if not check.consistent]
    (10, [])
    """
    table = library["2"]
    for row in _having(table, "diff"):
        (best,) = table.select(method="upper-bound", backbone=row["backbone"])
        inputs = _cell(table, best, "accuracy"), _cell(table, row, "accuracy")
        yield _derived(table, row, "diff", "difference", _minus, *inputs)
    first = library["1"]
    for row in table.select(backbone="vit-b/16"):
        for column in ("accuracy", "accuracy_deviation"):
            if row[column] is not None:
                yield _repeated(table, row, column, first, method=row["method"], data="cifar100")
    for row in library["4"].select(method="upper-bound"):
        yield _repeated(library["4"], row, "accuracy", first, method="upper-bound", data="cifar100")
    for row in library["4"].select(method="gdumb"):  # it learns from the buffer alone, whatever the stream
        again: dict[str, Cell] = {"method": "gdumb", "data": "cifar100"}
        again["protocol"] = "10 tasks, 50 kept of each class, ImageNet-21k"
        yield _repeated(library["4"], row, "accuracy", first, **again)
    yield from _not_ablated(library["5"], first, method="l2p", data="5-datasets")


def esn(library: Library) -> Iterator[Check]:
    """The results that ESN prints twice.

    >>> from holdfast.papers import tables
    >>> [check.consistent for check in esn({each.number: each for each in tables("esn")})]
    [True, True]
    """
    yield from _not_ablated(library["5"], library["1"], method="esn")


def _not_ablated(table: PublishedTable, first: PublishedTable, **keys: Cell) -> Iterator[Check]:
    for row in table.select(ablated="none"):
        for column in ("accuracy", "forgetting"):
            yield _repeated(table, row, column, first, **keys)


def nsp2(library: Library) -> Iterator[Check]:
    """The results that NSP2 prints twice: those with all of its components.

    >>> from holdfast.papers import tables
    >>> checks = list(nsp2({each.number: each for each in tables("nsp2")}))
    >>> len(checks), all(check.consistent for check in checks)
    (8, True)
    """
    table = library["3"]
    for row in table.select(components="B1 B2 LN"):
        for column in ("accuracy", "forgetting"):
            keys = {name: row[name] for name in ("data", "protocol")}
            yield _repeated(table, row, column, library["2"], method="vpt-nsp2", **keys)


def vq_prompt(library: Library) -> Iterator[Check]:
    """The results that VQ-Prompt prints twice: in the tables, and beside its Figure 3.

    >>> from holdfast.papers import tables
    >>> checks = list(vq_prompt({each.number: each for each in tables("vq-prompt")}))
    >>> [(check.table, check.keys[0][1], check.printed, check.mid) for check in checks if not check.consistent]
    [('fig3', 'vq-prompt-s', 78.05, 78.0), ('fig3', 'vq-prompt', 78.83, 78.71)]
    """
    for number, first in (("5", library["1"]), ("fig3", library["5"])):
        table = library[number]
        there = {row["method"] for row in first}
        for row in table:
            if row["method"] in there:
                for column in (each.name for each in table.columns if each.kind == "value"):
                    yield _repeated(table, row, column, first, **{name: row[name] for name in table.keys})


def mcitlib(library: Library) -> Iterator[Check]:
    """The means over tasks of UCIT, and the backward transfer that follows from them.

    >>> from holdfast.papers import tables
    >>> checks = list(mcitlib({each.number: each for each in tables("mcitlib")}))
    >>> [(check.column, check.consistent) for check in checks]
    [('mft', True), ('mfn', True), ('bwt', True)]
    """
    table = library["3a"]
    tasks = [column.name for column in table.columns if column.kind == "value"][:-4]
    for row in table:
        scores = [_cell(table, row, name) for name in tasks]
        # one model for each task has no last stage: its scores are those of each task once it is learned
        yield _derived(table, row, "mft" if row["mfn"] is None else "mfn", "mean", _mean, *scores)
        if row["bwt"] is not None:
            inputs = (_cell(table, row, "mfn"), _cell(table, row, "mft"))
            yield _derived(
                table, row, "bwt", "backward-transfer", lambda a, b: (a - b) * len(tasks) / (len(tasks) - 1), *inputs
            )


def _minus(best: float, other: float) -> float:
    return best - other


def _nothing(library: Library) -> Iterator[Check]:
    return iter(())


BY_PAPER: Mapping[str, Callable[[Library], Iterable[Check]]] = {
    "climb": climb,
    "climb-v1": climb,
    "viscoll": viscoll,
    "clvqa": clvqa,
    "cfst": cfst,
    "zscl": zscl,
    "o-lora": o_lora,
    "l2p": l2p,
    "l2p-pytorch": _nothing,
    "esn": esn,
    "nsp2": nsp2,
    "vq-prompt": vq_prompt,
    "mcitlib": mcitlib,
}


def _chance_scores(table: PublishedTable) -> dict[Cell, Printed]:
    # The authors may have used the figure they print (33.33, 0.0) or the exact one (100 / 3, 100 / 3129).
    return {row["task"]: between(_number(row["chance"]), _chance_of(_number(row["labels"]))) for row in table}


def _chance_of(answers: float) -> float:
    return 100 / answers


def _answers(decision: str) -> int:
    """The number of answers in '1 of 5' or in 'positive/negative'."""
    head, _, count = decision.partition("1 of ")
    return int(count) if count else len(head.split("/"))


def _harmonic_mean(*values: float) -> float:
    return float(harmonic_mean(values))


def _related_score(novel: float, seen: float) -> float:
    return 100 * float(related_score(novel, seen))


def _number(cell: Cell) -> float:
    assert isinstance(cell, int | float), cell
    return cell


def _exact(cell: Cell) -> Printed:
    return exactly(_number(cell))


def _cell(table: PublishedTable, row: Row, column: str) -> Printed:
    return printed(_number(row[column]), table.column(column).decimals)


def _having(table: PublishedTable, column: str) -> Iterator[dict[str, Cell]]:
    return (row for row in table if row[column] is not None)


def _against(table: PublishedTable, row: Row, column: str, rule: str, recomputed: Printed) -> Check:
    keys = {name: row[name] for name in table.keys}
    return verify(table.paper, table.number, keys, column, rule, _cell(table, row, column), recomputed)


def _derived(
    table: PublishedTable, row: Row, column: str, rule: str, formula: Callable[..., float], *inputs: Printed
) -> Check:
    return _against(table, row, column, rule, recompute(formula, *inputs))


def _repeated(table: PublishedTable, row: Row, column: str, other: PublishedTable, **keys: Cell) -> Check:
    # The other number is taken without its interval: with it, 67.70 and 67.71 would overlap at 67.705.
    return _against(table, row, column, "repeated", _exact(other.value(column, **keys)))
