import numpy as np

from holdfast.data.order import mix, shuffled


def test_an_epoch_visits_everything_once_and_another_epoch_in_another_order():
    ids = np.arange(100, 200)
    first, again, second = (shuffled(ids, seed=1, stage=2, epoch=e) for e in (0, 0, 1))
    assert sorted(first) == ids.tolist()
    assert first.tolist() == again.tolist()
    assert first.tolist() != second.tolist()


def test_seeds_of_neighbouring_steps_do_not_collide_even_in_their_low_bits():
    """PyTorch's CPU generator takes 32 bits of a seed."""
    seeds = [mix(s, t, e, k) & 0xFFFFFFFF for s in range(4) for t in range(4) for e in range(4) for k in range(200)]
    assert len(set(seeds)) >= len(seeds) - 2
