"""The attention kernel: whichever way operands lie, on any number of threads, without a matrix of all scores."""

import math

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck

attend = F.scaled_dot_product_attention
BOUND = {torch.float32: 3e-5, torch.float64: 1e-11}


def composed(q, k, v, mask=None, is_causal=False):
    """The formula in products and a softmax; rows that see no key give zeros."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    seen = torch.ones(scores.shape, dtype=torch.bool)
    if is_causal:
        seen = seen.tril()
    elif mask is not None:
        seen = seen & (mask if mask.dtype == torch.bool else mask != -math.inf)
        if mask.dtype != torch.bool:
            scores = scores + mask.masked_fill(mask == -math.inf, 0.0)
    blind = ~seen.any(-1, keepdim=True)
    weights = scores.masked_fill(~(seen | blind), -math.inf).softmax(-1)
    return (weights @ v).masked_fill(blind, 0.0)


def masks(shape, dtype):
    seen = torch.rand(shape) > 0.4
    seen[..., 0, :] = False
    return [None, seen, torch.randn(shape, dtype=dtype), torch.zeros(shape, dtype=dtype).masked_fill(~seen, -math.inf)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("heads", "length", "keys", "width", "values"),
    [
        ((), 5, 7, 3, 2),
        ((3,), 70, 33, 8, 17),
        ((2, 3), 64, 64, 32, 32),
        ((2, 1), 1, 200, 5, 1),
        ((2, 2), 130, 90, 33, 16),
    ],
)
def test_it_agrees_with_the_formula(heads, length, keys, width, values, dtype):
    torch.manual_seed(0)
    operands = [torch.randn(*heads, n, m, dtype=dtype) for n, m in ((length, width), (keys, width), (keys, values))]
    cotangent = torch.randn(*heads, length, values, dtype=dtype)
    cases = [{"attn_mask": mask} for mask in masks((length, keys), dtype)] + [{"is_causal": True}]
    for case in cases:
        found, expected = [], []
        for call, results in ((attend, found), (composed, expected)):
            leaves = [x.clone().requires_grad_() for x in operands]
            y = call(*leaves, **({"mask": case["attn_mask"]} if call is composed and "attn_mask" in case else case))
            results.extend([y.detach(), *torch.autograd.grad(y, leaves, cotangent)])
        for a, b in zip(found, expected, strict=True):
            assert torch.allclose(a, b, rtol=BOUND[dtype], atol=BOUND[dtype] * (1 + length**0.5))


def test_operands_that_lie_otherwise():
    torch.manual_seed(0)
    packed = torch.randn(2, 9, 3 * 4 * 5, dtype=torch.float64, requires_grad=True)

    def heads(x):
        return [t.view(2, 9, 4, 5).transpose(1, 2) for t in x.split(20, 2)]

    def run(call):
        y = call(*heads(packed), is_causal=True)
        return [y, *torch.autograd.grad(y.square().sum(), packed)]

    for a, b in zip(run(attend), run(composed), strict=True):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-12)
    q, k, v = heads(packed.detach())
    turned = q.transpose(2, 3).clone().transpose(2, 3)  # its numbers are not side by side
    assert torch.equal(attend(turned, k, v), attend(q, k, v))
    assert torch.equal(attend(q[:1].expand(2, 4, 9, 5), k, v)[0], attend(q, k, v)[0])
    # the heads of a position lie beside each other, so that joining them again moves nothing
    assert attend(q, k, v).transpose(1, 2).is_contiguous()


def test_heads_that_share_keys():
    torch.manual_seed(0)
    q = torch.randn(2, 6, 5, 3, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(2, 2, 7, n, dtype=torch.float64, requires_grad=True) for n in (3, 4))
    own_k, own_v = (x.repeat_interleave(3, 1) for x in (k, v))
    shared, alone = attend(q, k, v, enable_gqa=True), attend(q, own_k, own_v)
    assert torch.equal(shared, alone)
    cotangent = torch.randn(2, 6, 5, 4, dtype=torch.float64)
    for a, b in zip(*(torch.autograd.grad(y, (q, k, v), cotangent) for y in (shared, alone)), strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-13)
    with pytest.raises(RuntimeError, match=r"size of tensor a \(6\) must match the size of tensor b \(2\)"):
        attend(q, k, v)


@pytest.mark.parametrize("case", ["plain", "causal", "seen", "added", "grouped"])
def test_second_derivatives(case):
    torch.manual_seed(0)
    q = torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    shared = 1 if case == "grouped" else 2
    k, v = (torch.randn(2, shared, 4, n, dtype=torch.float64, requires_grad=True) for n in (2, 3))
    options = {
        "plain": {"scale": 0.7},
        "causal": {"is_causal": True},
        "seen": {"attn_mask": torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])},
        "added": {"attn_mask": torch.randn(3, 4, dtype=torch.float64)},
        "grouped": {"enable_gqa": True},
    }[case]
    assert gradcheck(lambda *x: attend(*x, **options), (q, k, v))
    assert gradgradcheck(lambda *x: attend(*x, **options), (q, k, v))


def test_a_mask_that_is_learnt_has_a_gradient():
    q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64) for _ in range(3))
    mask = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda m: attend(q, k, v, m), (mask,))


def test_no_matrix_of_all_scores_is_kept():
    q, k, v = (torch.randn(2, 2, n, 4, requires_grad=True) for n in (30, 50, 50))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(tuple(x.shape)) or x, lambda x: x):
        attend(q, k, v)
    assert kept
    assert all(math.prod(shape) < 2 * 2 * 30 * 50 for shape in kept)


@pytest.mark.parametrize("shape", [(1, 1, 300, 8), (2, 3, 70, 16)])
def test_same_bits_on_any_number_of_threads(shape):
    torch.manual_seed(0)
    operands = [torch.randn(shape) for _ in range(3)]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            leaves = [x.clone().requires_grad_() for x in operands]
            y = attend(*leaves, is_causal=True)
            found.append([y.detach(), *torch.autograd.grad(y.sin().sum(), leaves)])
    finally:
        torch.set_num_threads(before)
    for results in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results, found[0], strict=True))


def test_large_scores_neither_overflow_nor_vanish():
    q = torch.full((1, 2, 4), 300.0)
    k = torch.stack([torch.full((4,), 300.0), torch.full((4,), -300.0)]).unsqueeze(0)
    v = torch.tensor([[[1.0], [2.0]]])
    assert attend(q, k, v).tolist() == [[[1.0], [1.0]]]
    assert math.isnan(attend(q, k.masked_fill(k < 0, math.nan), v)[0, 0, 0].item())
