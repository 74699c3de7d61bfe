"""Operands whose common runs are short are packed block by block; short lines are folded together (kernels/walk.h)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight as torch

DTYPES = ["float32", "float64", "int64", "uint8", "float16", "complex128", "bool"]


def numbers(shape, dtype, start=0):
    n = int(np.prod(shape))
    array = ((np.arange(start, start + n) * 7) % 23 - 5).reshape(shape)
    return array.astype(bool if dtype == "bool" else dtype)


def both(array):
    return torch.from_numpy(array.copy()), array


SHAPES = [
    ((300, 1, 3), (1, 40, 3)),
    ((300, 40, 1), (300, 40, 3)),
    ((1, 40, 3), (300, 40, 3)),
    ((3,), (300, 40, 3)),
    ((5, 1, 7, 1, 2), (1, 60, 1, 11, 2)),
    ((2, 3, 2, 3, 2, 3), (1, 3, 1, 3, 1, 3)),
    ((70, 1), (70, 31)),
    ((1000, 2), (2,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first, second", SHAPES)
def test_broadcasting(first, second, dtype):
    (a, x), (b, y) = both(numbers(first, dtype)), both(numbers(second, dtype, 3))
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            product, equal = a * b, a == b
        finally:
            torch.set_num_threads(2)
        assert np.array_equal(product.numpy(), x * y)
        assert np.array_equal(equal.numpy(), x == y)


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_permuted_operands_and_results(order, dtype):
    a, x = both(numbers((9, 50, 5), dtype))
    a, x = a.permute(order), x.transpose(order)
    b, y = both(numbers(x.shape, dtype, 3))
    assert np.array_equal((a + b).numpy(), x + y)
    assert np.array_equal((b + a[..., :1]).numpy(), y + x[..., :1])
    target = torch.zeros(9, 50, 5, dtype=a.dtype).permute(order)
    target.add_(a).mul_(b)
    assert np.array_equal(target.numpy(), x * y)
    out = torch.empty(9, 50, 5, dtype=a.dtype).permute(order)
    torch.add(a, b, out=out)
    assert np.array_equal(out.numpy(), x + y)


def test_a_result_with_gaps():
    a, x = both(numbers((400, 6), "float32"))
    a[:, 1:4] *= a[:, :1]
    x[:, 1:4] *= x[:, :1]
    a[::2, ::3] += a[1::2, 1::3]
    x[::2, ::3] += x[1::2, 1::3]
    assert np.array_equal(a.numpy(), x)


def test_steps_below_zero_and_flips():
    a, x = both(numbers((400, 3), "float32"))
    assert np.array_equal((a.flip(1) - a.flip(0)).numpy(), x[:, ::-1] - x[::-1])


def test_operands_of_different_widths():
    mask, m = both(numbers((400, 1), "bool"))
    a, x = both(numbers((400, 3), "float64"))
    b, y = both(numbers((3,), "float64", 4))
    assert np.array_equal(torch.where(mask, a, b).numpy(), np.where(m, x, y))
    half, h = both(numbers((400, 1), "float16"))
    assert np.array_equal((half * a).numpy(), h * x)


def test_division_by_zero_is_raised():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(400, 3, dtype=torch.int64) // torch.tensor([1, 0, 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_of_repeated_and_permuted_numbers(dtype):
    a, x = both(numbers((300, 4), dtype))
    assert np.array_equal(a[:, :, None].expand(300, 4, 3).contiguous().numpy(), np.repeat(x[:, :, None], 3, 2))
    assert np.array_equal(a.reshape(60, 5, 4).transpose(1, 2).contiguous().numpy(), x.reshape(60, 5, 4).swapaxes(1, 2))
    assert np.array_equal(torch.stack([a, a, a], -1).numpy(), np.stack([x, x, x], -1))
    assert np.array_equal(torch.stack([a[:, 0], a[:, 1]], 1).numpy(), x[:, :2])


@pytest.mark.parametrize("length", [1, 2, 3, 4, 15, 16, 17])
@pytest.mark.parametrize("lines", [(1,), (63,), (64,), (1000,), (30, 50)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_folds_of_short_lines(dtype, lines, length):
    array = numbers((*lines, length), dtype)
    a, x = both(array)
    assert np.array_equal(a.sum(-1).numpy(), x.astype("int64").sum(-1) if dtype == "uint8" else x.sum(-1))
    assert np.array_equal(a.amax(-1).numpy(), x.max(-1)) and np.array_equal(a.amin(-1).numpy(), x.min(-1))
    assert np.array_equal(a.argmax(-1).numpy(), x.argmax(-1)) and np.array_equal(a.max(-1)[1].numpy(), x.argmax(-1))
    assert np.array_equal((a != 0).all(-1).numpy(), (x != 0).all(-1))
    assert np.array_equal(a.count_nonzero(-1).numpy(), np.count_nonzero(x, -1))
    if dtype.startswith("float"):
        np.testing.assert_allclose(a.var(-1, correction=0).numpy(), x.var(-1), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(torch.linalg.vector_norm(a, dim=-1).numpy(), np.linalg.norm(x, axis=-1), rtol=1e-6)


def test_nan_in_short_lines():
    array = numbers((500, 3), "float32")
    array[7, 1], array[8, 2], array[9] = np.nan, np.inf, np.nan
    a, x = both(array)
    assert np.array_equal(a.amax(1).numpy(), x.max(1), equal_nan=True)
    assert a.max(1)[1][7].item() == 1 and a.argmax(1)[9].item() == 0
    assert a.nansum(1)[9].item() == 0


def test_threads_do_not_change_a_bit():
    a = torch.randn(3000, 3)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append((a.sum(1), (a[:, None] - a[None, :100]).square().sum(-1)))
    torch.set_num_threads(2)
    for other in results[1:]:
        assert torch.equal(other[0], results[0][0]) and torch.equal(other[1], results[0][1])


@pytest.mark.parametrize(
    "shape, dims",
    [
        ((5000, 3), (0,)),
        ((5001, 8), (0,)),
        ((7, 900, 3), (1,)),
        ((130, 64), (0,)),
        ((40, 50, 5), (0, 1)),
        ((2, 3, 700, 2), (2,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "complex128"])
def test_folds_of_narrow_columns(dtype, shape, dims):
    a, x = both(numbers(shape, dtype))
    assert np.array_equal(a.sum(dims).numpy(), x.astype("int64").sum(dims) if dtype == "uint8" else x.sum(dims))
    assert np.array_equal(a.sum(dims, keepdim=True).shape, x.sum(dims, keepdims=True).shape)
    assert np.array_equal((a != 0).any(dims).numpy(), (x != 0).any(dims))
    if dtype.startswith("complex"):
        return
    assert np.array_equal(a.amax(dims).numpy(), x.max(dims)) and np.array_equal(a.amin(dims).numpy(), x.min(dims))
    if len(dims) == 1:
        assert np.array_equal(a.argmax(dims[0]).numpy(), x.argmax(dims[0]))
    if dtype.startswith("float"):
        np.testing.assert_allclose(a.var(dims, correction=0).numpy(), x.var(dims), rtol=1e-5)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(torch.sin(a).sum(dims) if dtype.startswith("float") else a.sum(dims))
    torch.set_num_threads(2)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


@pytest.mark.parametrize("dtype, close", [("float32", 1e-5), ("float64", 1e-12), ("complex128", 1e-12)])
@pytest.mark.parametrize("count", [1, 7, 8, 64, 65, 1000])
@pytest.mark.parametrize("rows, inner, cols", [(1, 3, 1), (2, 2, 2), (3, 3, 1), (1, 4, 4), (4, 4, 4), (5, 4, 4)])
def test_products_of_small_matrices(rows, inner, cols, count, dtype, close):
    (a, x), (b, y) = both(numbers((count, rows, inner), dtype)), both(numbers((count, inner, cols), dtype, 3))
    np.testing.assert_allclose((a @ b).numpy(), x @ y, rtol=close, atol=close)
    c, z = both(numbers((count, rows, cols), dtype, 5))
    np.testing.assert_allclose(
        torch.baddbmm(c, a, b, beta=0.5, alpha=2).numpy(), 0.5 * z + 2 * (x @ y), rtol=close, atol=close
    )
    turned = torch.from_numpy(np.ascontiguousarray(x.swapaxes(1, 2))).mT
    np.testing.assert_allclose((turned @ b).numpy(), x @ y, rtol=close, atol=close)
    nan = torch.full((count, rows, cols), float("nan"), dtype=a.dtype)
    assert torch.bmm(a, b, out=nan).isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_of_one_number_and_backwards(dtype):
    a, x = both(numbers((300, 1), dtype))
    assert np.array_equal(a.expand(300, 200).contiguous().numpy(), np.repeat(x, 200, 1))
    b, y = both(numbers((30, 200), dtype))
    assert np.array_equal(b.flip(1).numpy(), y[:, ::-1]) and np.array_equal(b.flip(0, 1).numpy(), y[::-1, ::-1])
