"""Matrix products that are not summed, and batches that are one product."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight


@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64])
@pytest.mark.parametrize("place", ["left", "right"])
def test_products_with_single_numbers_in_rows_have_the_bits_of_sums(dtype: Any, place: str) -> None:
    generator = rushlight.Generator().manual_seed(5)
    b = rushlight.randn(40, 50, generator=generator, dtype=dtype)
    b[3, 4], b[7] = -0.0, 0.0
    factors = [rushlight.eye(40, dtype=dtype), rushlight.zeros(45, 40, dtype=dtype)]
    factors.append(rushlight.diag(rushlight.randn(40, generator=generator, dtype=dtype)).flip(0).contiguous())
    factors.append(-factors[0])  # zeros with a sign
    for a in factors:
        plain = a.clone()
        plain = rushlight.cat([plain, rushlight.ones(1, 40, dtype=dtype)])  # which is no such matrix
        for other in (b, b.t().contiguous().t()):
            if place == "left":
                ours, sums = a @ other, (plain @ other)[:-1]
            else:
                ours, sums = other.t() @ a.t(), (other.t() @ plain.t())[:, :-1]
            assert rushlight.equal(ours, sums)
            assert rushlight.equal(ours.signbit(), sums.signbit())


def test_products_of_unit_vectors_and_infinity_are_nan() -> None:
    b = rushlight.ones(40, 40)
    b[5, 6] = float("inf")
    product = rushlight.eye(40) @ b
    assert product[5, 6] == float("inf")
    assert int(product.isnan().sum()) == 39
    nan = rushlight.eye(40)
    nan[2, 2] = float("nan")
    assert (nan @ rushlight.ones(40, 40)).isnan().sum(1).tolist() == [0, 0, 40] + [0] * 37


SHARED = {
    "left": lambda a, b: (a[:1].expand(a.shape), b),
    "right": lambda a, b: (a, b[:1].expand(b.shape)),
    "both": lambda a, b: (a[:1].expand(a.shape), b[:1].expand(b.shape)),
    "turned": lambda a, b: (a.mT.contiguous().mT, b[:1].mT.contiguous().mT.expand(b.shape)),
    "reversed": lambda a, b: (a.transpose(0, 1).contiguous().transpose(0, 1), b[:1].expand(b.shape)),
}


@pytest.mark.parametrize("share", SHARED)
@pytest.mark.parametrize(
    "rows, inner, columns", [(1, 6, 5), (3, 6, 5), (3, 6, 1), (1, 6, 1), (4, 1, 5), (2, 0, 3), (0, 2, 3)]
)
@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64, rushlight.complex64, rushlight.int64])
def test_batches_with_a_shared_factor(share: str, rows: int, inner: int, columns: int, dtype: Any) -> None:
    generator = rushlight.Generator().manual_seed(2)
    a = rushlight.randn(7, rows, inner, generator=generator).mul(3).to(dtype)
    b = rushlight.randn(7, inner, columns, generator=generator).mul(3).to(dtype)
    a, b = SHARED[share](a, b)
    product = rushlight.bmm(a, b)
    assert product.shape == (7, rows, columns) and product.is_contiguous()
    for i in range(7):
        rushlight.testing.assert_close(product[i], a[i].clone() @ b[i].clone())


def test_outer_products_in_batches() -> None:
    u, v = rushlight.randn(5, 40, 1), rushlight.randn(5, 1, 50)
    v[0, 0, 3], v[1, 0, 4], u[2, 1, 0] = float("inf"), float("nan"), -0.0
    product = rushlight.bmm(u, v)
    rushlight.testing.assert_close(product, u * v, equal_nan=True, rtol=0, atol=0)
    assert not product[2, 1].signbit().any()  # sums begin with 0
    turned = rushlight.bmm(u, v, out=rushlight.empty(5, 50, 40).mT)
    rushlight.testing.assert_close(turned, product, equal_nan=True, rtol=0, atol=0)
    added = rushlight.baddbmm(rushlight.ones(5, 40, 50), u, v, beta=2, alpha=3)
    rushlight.testing.assert_close(added, 2 + 3 * u * v, equal_nan=True)
