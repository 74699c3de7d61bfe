"""Gathering and scattering by indices over every layout that the kernel tells apart, against NumPy."""

import numpy as np
import pytest

import rushlight as torch

# lines and places on both sides of what the kernel takes at a time (16 lines, blocks of 128 places), and beyond the
# work that a second thread is woken for
SIZES = [(1,), (5,), (300,), (70000,), (3, 140), (20, 130), (130, 20), (2, 40000), (300, 200), (4, 17, 33), (17, 5, 40)]


def _layouts(array):
    """The same numbers: row-major, column-major, with gaps, as a part that starts later."""
    x = torch.tensor(array)
    back = x.permute(*range(x.ndim)[::-1]).contiguous()
    yield x
    yield back.permute(*range(x.ndim)[::-1])
    wide = torch.zeros(*x.shape, 2, dtype=x.dtype)
    wide[..., 1] = x
    yield wide[..., 1]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_gather_and_scatter(sizes):
    rng = np.random.default_rng(0)
    for dim in range(len(sizes)):
        table = rng.integers(0, 9, sizes).astype(np.float32)
        places = rng.integers(0, sizes[dim], sizes)
        values = rng.integers(0, 9, sizes).astype(np.float32)
        order = rng.permuted(np.broadcast_to(np.arange(sizes[dim]), np.moveaxis(places, dim, -1).shape), axis=-1)
        order = np.ascontiguousarray(np.moveaxis(order, -1, dim))
        read = np.take_along_axis(table, places, dim)
        written = table.copy()
        np.put_along_axis(written, order, values, dim)
        added = table.copy()
        at = list(np.indices(sizes))
        at[dim] = places
        np.add.at(added, tuple(at), values)
        for t, p, o, v in zip(*map(_layouts, (table, places, order, values)), strict=True):
            np.testing.assert_array_equal(t.gather(dim, p).numpy(), read)
            np.testing.assert_array_equal(t.scatter(dim, o, v).numpy(), written)
            np.testing.assert_array_equal(t.scatter_add(dim, p, v).numpy(), added)
            np.testing.assert_array_equal(t.take_along_dim(p, dim).numpy(), read)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_one_index_for_all_lines(sizes):
    rng = np.random.default_rng(1)
    for dim in range(len(sizes)):
        table = rng.integers(0, 9, sizes).astype(np.float64)
        count = max(1, sizes[dim] // 2)
        places, order = rng.integers(0, sizes[dim], count), rng.permutation(sizes[dim])[:count]
        values = rng.integers(0, 9, sizes[:dim] + (count,) + sizes[dim + 1 :]).astype(np.float64)
        added, written = np.moveaxis(table.copy(), dim, 0), np.moveaxis(table.copy(), dim, 0)
        np.add.at(added, places, 2 * np.moveaxis(values, dim, 0))
        written[order] = np.moveaxis(values, dim, 0)
        p, o = torch.tensor(places), torch.tensor(order)
        key = (slice(None),) * dim
        for t, v in zip(_layouts(table), _layouts(values), strict=True):
            np.testing.assert_array_equal(t.index_select(dim, p).numpy(), table.take(places, dim))
            np.testing.assert_array_equal(t[(*key, p - sizes[dim])].numpy(), table.take(places, dim))
            np.testing.assert_array_equal(t.index_add(dim, p, v, alpha=2).numpy(), np.moveaxis(added, 0, dim))
            np.testing.assert_array_equal(t.index_copy(dim, o, v).numpy(), np.moveaxis(written, 0, dim))
            filled = t.clone()
            filled[(*key, o - sizes[dim])] = v
            np.testing.assert_array_equal(filled.numpy(), np.moveaxis(written, 0, dim))


@pytest.mark.parametrize("count", [3, 200, 50000])
def test_elements_by_number_and_by_several_indices(count):
    rng = np.random.default_rng(2)
    table = rng.integers(0, 9, (40, 30)).astype(np.float32)
    rows, columns, values = rng.integers(-40, 40, count), rng.integers(-30, 30, count), rng.integers(0, 9, count)
    numbers = rows % 40 * 30 + columns % 30
    added = table.copy()
    np.add.at(added, (rows, columns), values)
    r, c, n, v = (torch.tensor(a) for a in (rows, columns, numbers, values.astype(np.float32)))
    for t in _layouts(table):
        np.testing.assert_array_equal(t.take(n - 1200).numpy(), table[rows, columns])
        np.testing.assert_array_equal(t[r, c].numpy(), table[rows, columns])
        np.testing.assert_array_equal(t.put(n, v, accumulate=True).numpy(), added)
        np.testing.assert_array_equal(t.index_put((r, c), v, accumulate=True).numpy(), added)


@pytest.mark.parametrize("bad", [-41, 40])
@pytest.mark.parametrize("at", [0, 130, 69999])
def test_nothing_is_changed_by_an_index_that_is_not_there(bad, at):
    x, places, values = torch.zeros(40), torch.zeros(70000, dtype=torch.int64), torch.ones(70000)
    places[at] = bad
    for raises, call in [
        (RuntimeError, lambda: x.gather(0, places)),
        (RuntimeError, lambda: x.scatter(0, places, values)),
        (RuntimeError, lambda: x.scatter_(0, places, values)),
        (RuntimeError, lambda: x.scatter_(0, places, 1.0)),
        (RuntimeError, lambda: x.scatter_add(0, places, values)),
        (RuntimeError, lambda: x.scatter_add_(0, places, values)),
        (IndexError, lambda: x.index_select(0, places)),
        (RuntimeError, lambda: x.index_add(0, places, values)),
        (RuntimeError, lambda: x.index_add_(0, places, values)),
        (IndexError, lambda: x.index_copy_(0, places, values)),
        (IndexError, lambda: x.take(places)),
        (IndexError, lambda: x.put(places, values)),
        (IndexError, lambda: x.put_(places, values, accumulate=True)),
        (IndexError, lambda: x[places]),
        (IndexError, lambda: x.index_put((places,), values)),
        (IndexError, lambda: x.index_put_((places,), values)),
    ]:
        with pytest.raises(raises, match=r"(?i)index.*(out of range|out of bounds)|out of range"):
            call()
        assert not x.any()


def test_a_later_value_wins_whatever_the_threads():
    places = torch.arange(100000) % 7
    values = torch.arange(100000.0)
    last = [max(range(k, 100000, 7)) for k in range(7)]
    assert torch.zeros(7).scatter(0, places, values).tolist() == last
    assert torch.zeros(7).index_put((places,), values).tolist() == last
    x = torch.zeros(7)
    x[places] = values
    assert x.tolist() == last
