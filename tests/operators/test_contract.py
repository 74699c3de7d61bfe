"""einsum and tensordot against sums of products written out, for random equations and shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight.operators import contract

DOUBLE = {"dtype": torch.float64}


def random(*shape):
    return torch.randn(*shape, **DOUBLE, requires_grad=True)


@st.composite
def contractions(draw):
    """An equation with an output, and shapes; sizes of 1 beside greater ones and of 0 are among them."""
    sizes = {letter: draw(st.sampled_from([0, 1, 2, 2, 3, 3])) for letter in "abcd"}
    terms = draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=4))
    used = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations(used))[: draw(st.integers(0, len(used)))])
    shapes = []
    for term in terms:
        narrow = {letter: draw(st.booleans()) and draw(st.booleans()) for letter in set(term)}
        shapes.append([1 if narrow[letter] else sizes[letter] for letter in term])
    return terms, output, shapes


def written_out(terms, output, arrays):
    """The sum over all indices, one product at a time."""
    sizes = {}
    for term, array in zip(terms, arrays, strict=True):
        for letter, n in zip(term, array.shape, strict=True):
            sizes[letter] = n if sizes.get(letter, 1) == 1 else sizes[letter]
    result = np.zeros([sizes[letter] for letter in output])
    for index in itertools.product(*[range(n) for n in sizes.values()]):
        at = dict(zip(sizes, index, strict=True))
        product = 1.0
        for term, array in zip(terms, arrays, strict=True):
            product *= array[tuple(0 if n == 1 else at[letter] for letter, n in zip(term, array.shape, strict=True))]
        result[tuple(at[letter] for letter in output)] += product
    return result


@given(contractions())
@settings(max_examples=150, deadline=None)
def test_the_sum_of_products(contraction):
    terms, output, shapes = contraction
    operands = [random(*shape) if shape else random(1)[0] for shape in shapes]
    result = torch.einsum(",".join(terms) + "->" + output, *operands)
    expected = written_out(terms, output, [x.detach().numpy() for x in operands])
    assert result.shape == expected.shape
    assert np.allclose(result.detach().numpy(), expected)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,j->i", [(2, 3), (3,)]),
        ("i,i->", [(3,), (3,)]),
        ("bij,bjk->bik", [(2, 3, 2), (2, 2, 3)]),
        ("bhid,bhjd->bhij", [(1, 2, 3, 2), (2, 2, 2, 2)]),
        ("i,j->ij", [(2,), (3,)]),
        ("bi,bi->b", [(2, 3), (2, 3)]),
        ("ii->i", [(3, 3)]),
        ("...ij,...jk", [(2, 2, 3), (3, 2)]),
        ("ij,jk,kl->il", [(2, 1), (3, 2), (2, 2)]),
        ("ijj,jk->k", [(2, 3, 3), (3, 2)]),
    ],
)
def test_gradients(equation, shapes):
    operands = tuple([random(*shape) for shape in shapes])
    assert torch.autograd.gradcheck(lambda *x: torch.einsum(equation, *x), operands, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda *x: torch.einsum(equation, *x), operands)


def test_numbered_subscripts():
    a, b = random(2, 3), random(3, 4)
    assert torch.equal(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    assert torch.equal(torch.einsum(a, [0, 7], b, [7, 2]), a @ b)
    assert torch.allclose(torch.einsum(a, [..., 1], b, [1, 2], [..., 2]), a @ b)


def test_a_plan_is_made_once_for_the_same_shapes():
    contract._equation_plan.cache_clear()
    a, b = random(2, 3), random(3, 4)
    for _ in range(5):
        torch.einsum("ij,jk->ik", a, b)
    assert contract._equation_plan.cache_info().misses == 1
    assert torch.einsum("ij,jk->ik", random(5, 3), b).shape == (5, 4)


def test_a_plan_takes_no_needless_step():
    plan = contract._equation_plan("bij,bjk->bik", (2, 3, 4), (2, 4, 5))
    assert plan == ((((), (), torch.Tensor.matmul),), ())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("ij,jk", (2, 3)), RuntimeError, "fewer operands were provided"),
        (("ij", (2, 3), (3, 2)), RuntimeError, "more operands were provided"),
        (("i", (2, 3)), RuntimeError, r"number of subscripts in the equation \(1\)"),
        (("ij,jk->il", (2, 3), (3, 2)), RuntimeError, "l does not appear"),
        (("ij->ii", (2, 2)), RuntimeError, "i appears more than once in the output"),
        (("i?->i", (2, 2)), RuntimeError, "invalid subscript given at index 1"),
        (("ij,jk->ik", (2, 3), (4, 2)), RuntimeError, "subscript j has sizes 3 and 4"),
        (("ii->i", (2, 3)), RuntimeError, "repeated for operand but the sizes don't match, 3 != 2"),
        (("ij",), RuntimeError, "at least one operand"),
    ],
)
def test_equations_that_do_not_fit(arguments, error, message):
    equation, *shapes = arguments
    with pytest.raises(error, match=message):
        torch.einsum(equation, *[torch.ones(shape) for shape in shapes])


def test_operands_that_are_no_tensors():
    with pytest.raises(TypeError, match="operand 1, but got int"):
        torch.einsum("i,i->", torch.ones(2), 3)
    with pytest.raises(ValueError, match="must specify the equation string"):
        torch.einsum()
    with pytest.raises(ValueError, match=r"within range \[0, 52\)"):
        torch.einsum(torch.ones(2), [52])


@pytest.mark.parametrize(
    ("shapes", "dims"),
    [
        (((2, 3, 4), (3, 4, 5)), 2),
        (((2, 3), (4, 5)), 0),
        (((2, 3), (3, 2)), ([0, 1], [1, 0])),
        (((2, 3, 4), (4, 3)), ([-1, 1], [0, -1])),
        (((2, 1), (4, 3)), 1),
        (((2, 0), (0, 3)), 1),
    ],
)
def test_tensordot(shapes, dims):
    a, b = [random(*shape) for shape in shapes]
    left, right = (range(-dims, 0), range(dims)) if isinstance(dims, int) else dims
    wide = [a.detach().numpy(), b.detach().numpy()]
    for i, j in zip(left, right, strict=True):
        n = max(wide[0].shape[i], wide[1].shape[j])
        wide = [np.repeat(x, n, d) if x.shape[d] == 1 else x for x, d in zip(wide, (i, j), strict=True)]
    expected = np.tensordot(*wide, (list(left), list(right)))
    assert np.allclose(torch.tensordot(a, b, dims).detach().numpy(), expected)
    if a.numel():
        assert torch.autograd.gradcheck(lambda a, b: torch.tensordot(a, b, dims), (a, b))


@pytest.mark.parametrize(
    ("dims", "error", "message"),
    [
        (-1, RuntimeError, "expects dims >= 0"),
        (3, RuntimeError, "dims < ndim_a or ndim_b"),
        (([0, 1], [0]), RuntimeError, "same length"),
        (([0], [0]), RuntimeError, "size 2 in dim 0 and second has size 3"),
        (([1, 1], [0, 0]), RuntimeError, "dim 1 appears multiple times"),
        (([5], [0]), IndexError, r"range of \[-2, 1\], but got 5"),
    ],
)
def test_dims_that_do_not_fit(dims, error, message):
    with pytest.raises(error, match=message):
        torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), dims)
