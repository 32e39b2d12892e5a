import numpy as np
import pytest
import torch

from holdfast.data.table import Data, Shared, Table, table
from holdfast.errors import UserError
from holdfast.types import Example

CPU = torch.device("cpu")


def rows(task: str, count: int, start: int = 0) -> Table:
    values = torch.arange(start, start + count)
    return Table(task, {"x": values.float().reshape(-1, 1)}, values)


def test_fetch_gathers_rows_of_several_tables_by_id():
    data = Data([rows("a", 3), rows("b", 4, start=10)])
    batch = data.fetch(np.array([5, 0, 3, 2]), CPU)
    assert [(p.task, p.targets.tolist()) for p in batch.parts] == [("a", [0, 2]), ("b", [12, 10])]
    assert [p.inputs["x"].flatten().tolist() for p in batch.parts] == [[0, 2], [12, 10]]
    assert data.targets(np.array([5, 0, 3, 2])).tolist() == [12, 0, 10, 2]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_ranks_share_each_part_and_pad_with_weight_zero(size):
    data = Data([rows("a", 6), rows("b", 4, start=10)])
    ids = np.array([0, 6, 1, 2, 3])
    seen: dict[str, list[int]] = {"a": [], "b": []}
    for rank in range(size):
        parts = data.fetch(ids, CPU, rank, size).parts
        assert [part.task for part in parts] == ["a", "b"], "every rank runs the same graph"
        for part in parts:
            assert len(part.targets) > 0
            if part.weights is None:
                seen[part.task] += part.targets.tolist()
            else:
                assert part.weights.tolist() == [0.0]
    assert sorted(seen["a"]) == [0, 1, 2, 3]
    assert seen["b"] == [10]


def test_bytes_of_examples_are_counted_at_their_stored_size():
    data = Data(
        [rows("a", 3), Table("b", {"x": torch.zeros(2, 5, dtype=torch.uint8)}, torch.zeros(2, dtype=torch.long))]
    )
    assert data.example_bytes(np.array([0, 1, 3])) == 2 * (4 + 8) + (5 + 8)
    assert data.nbytes == 3 * 12 + 2 * 13


def test_a_changed_value_changes_the_fingerprint():
    before, after = rows("a", 3), rows("a", 3)
    after.inputs["x"][1, 0] += 1
    assert Data([before]).fingerprint() != Data([after]).fingerprint()
    assert Data([before]).fingerprint() == Data([rows("a", 3)]).fingerprint()


def test_images_of_different_sizes_are_refused_by_name():
    images = [Example("a", 0, (np.zeros((2, 2, 1), np.uint8),)), Example("b", 0, (np.zeros((3, 3, 1), np.uint8),))]
    with pytest.raises(UserError, match=r"task 'colours'.*one size"):
        table("colours", images)


def test_columns_that_share_an_index_look_it_up_once_and_give_the_same():
    """As regions, boxes and their counts share an image's number; moving them to a device keeps it shared."""
    index = torch.tensor([2, 0, 1, 2])
    columns = {"a": Shared(torch.arange(6).reshape(3, 2), index), "b": Shared(torch.tensor([7, 8, 9]), index)}
    columns["pair"] = Shared(torch.tensor([5, 6, 4]), torch.tensor([[0, 1], [1, 2], [2, 0], [0, 0]]))
    rows = Table("t", columns, torch.arange(4)).to(torch.device("cpu"))
    moved = Table("t", columns, torch.arange(4)).to(torch.device("meta"))
    assert moved.inputs["a"].index is moved.inputs["b"].index
    inputs = Data([rows]).fetch(np.array([3, 1]), torch.device("cpu")).parts[0].inputs
    assert inputs["a"].tolist() == [[4, 5], [0, 1]]
    assert inputs["b"].tolist() == [9, 7]
    assert inputs["pair"].tolist() == [[5, 5], [6, 4]]
