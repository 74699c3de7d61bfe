"""Elements chosen by masks, for items of every width and across the parts that threads share, against NumPy."""

from typing import Any

import numpy as np
import pytest

import rushlight as torch

DTYPES = ["bool", "int16", "float32", "float64", "complex64", "complex128"]
SIZES = [(0,), (1,), (9,), (16384,), (16385,), (50001,), (3, 0), (7, 9), (3, 16400), (200, 300), (2, 3, 4), (5, 70, 90)]


def _numbers(rng: np.random.Generator, sizes: tuple[int, ...], dtype: str) -> Any:
    return rng.integers(-9, 9, sizes).astype(dtype)


@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_masks_and_positions(sizes, density):
    rng = np.random.default_rng(len(sizes))
    mask = rng.random(sizes) < density
    for dtype in DTYPES:
        x, source = _numbers(rng, sizes, dtype), _numbers(rng, (mask.size,), dtype)
        written, filled = x.copy(), x.copy()
        written[mask], filled[mask] = source[: mask.sum()], 1
        for t, m in [
            (torch.tensor(x), torch.tensor(mask)),
            (
                torch.tensor(x.T.copy()).permute(*range(x.ndim)[::-1]),
                torch.tensor(mask.T.copy()).permute(*range(x.ndim)[::-1]),
            ),
        ]:
            s = torch.tensor(source)
            np.testing.assert_array_equal(t.masked_select(m).numpy(), x[mask])
            np.testing.assert_array_equal(t[m].numpy(), x[mask])
            np.testing.assert_array_equal(t.masked_scatter(m, s).numpy(), written)
            by_values, by_number, in_place = t.clone(), t.clone(), t.clone()
            by_values[m] = s[: int(m.sum())]
            by_number[m] = 1
            in_place.masked_scatter_(m, s)
            np.testing.assert_array_equal(by_values.numpy(), written)
            np.testing.assert_array_equal(by_number.numpy(), filled)
            np.testing.assert_array_equal(in_place.numpy(), written)
            np.testing.assert_array_equal(t.nonzero().numpy(), np.argwhere(x))
        np.testing.assert_array_equal(torch.tensor(mask).nonzero().numpy(), np.argwhere(mask))


def test_a_mask_of_other_bytes_than_one():
    mask = torch.tensor([0, 1, 2, 128, 255, 0, 127, 4, 0, 3], dtype=torch.uint8).view(torch.bool)
    x = torch.arange(10.0)
    assert x[mask].tolist() == [1, 2, 3, 4, 6, 7, 9]
    assert x.masked_scatter(mask, -x).tolist() == [0, 0, -1, -2, -3, 5, -4, -5, 8, -6]


def test_the_gradient_of_chosen_elements():
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    mask = torch.tensor([[True, False, True], [False, True, False]])
    (first,) = torch.autograd.grad((x[mask] ** 3).sum(), x, create_graph=True)
    np.testing.assert_array_equal(first.detach().numpy(), [[0, 0, 12], [0, 48, 0]])
    (second,) = torch.autograd.grad(first.sum(), x)
    np.testing.assert_array_equal(second.numpy(), [[0, 0, 12], [0, 24, 0]])
    assert torch.autograd.gradcheck(lambda t: t[mask] * 2, (x,))


@pytest.mark.parametrize("values", [torch.ones(4), torch.ones(3, 1), torch.ones(0)], ids=lambda v: str(tuple(v.shape)))
def test_values_that_do_not_fit_the_mask(values):
    x, mask = torch.zeros(5), torch.tensor([True, False, True, True, False])
    with pytest.raises(
        RuntimeError,
        match=r"shape mismatch: value tensor of shape \[.*\] cannot be broadcast to indexing result of shape \[3\]",
    ):
        x[mask] = values
    assert not x.any()


def test_leading_ones_of_values_do_not_count():
    x, mask = torch.zeros(5), torch.tensor([True, False, True, True, False])
    x[mask] = torch.tensor([[1.0, 2, 3]])
    assert x.tolist() == [1, 0, 2, 3, 0]
    x[torch.tensor([4, 1])] = torch.tensor([[[5.0, 6]]])
    assert x.tolist() == [1, 6, 2, 3, 5]
    x[mask] = torch.tensor([[7.0]])
    assert x.tolist() == [7, 6, 7, 7, 5]
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x.index_put_((mask,), torch.ones(1, 3))
