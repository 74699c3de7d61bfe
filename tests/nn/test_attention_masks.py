"""The package nn.attention: backends, causal masks, attention with changed scores."""

import math

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck
from rushlight.nn.attention import SDPBackend, sdpa_kernel
from rushlight.nn.attention.bias import causal_lower_right, causal_upper_left
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b, h, q, kv):
    return q >= kv


def qkv(queries=5, keys=6, heads=2, key_heads=2):
    torch.manual_seed(0)
    return (
        torch.randn(2, heads, queries, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(2, key_heads, keys, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(2, key_heads, keys, 3, dtype=torch.float64, requires_grad=True),
    )


def test_backends_are_names():
    args = qkv()
    expected = F.scaled_dot_product_attention(*args)
    for choice in (SDPBackend.FLASH_ATTENTION, [SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION]):
        with sdpa_kernel(choice):
            assert torch.equal(F.scaled_dot_product_attention(*args), expected)
    with pytest.raises(AssertionError, match="got str"), sdpa_kernel("math"):
        pass


def test_causal_masks():
    assert causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    assert causal_lower_right(2, 3).tolist() == [[True, True, False], [True, True, True]]
    with pytest.warns(UserWarning, match="without keys"):
        assert causal_lower_right(3, 2).tolist() == [[False, False], [True, False], [True, True]]
    q, k, v = qkv()
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, causal_upper_left(5, 6)), expected)


def test_changed_scores():
    q, k, v = qkv()
    torch.testing.assert_close(flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    slopes = torch.tensor([0.1, 0.7], dtype=torch.float64)

    def distance(score, b, h, i, j):
        return score - slopes[h] * (i - j).abs()

    places = (torch.arange(5)[:, None] - torch.arange(6)).abs()
    added = -slopes[:, None, None] * places
    torch.testing.assert_close(flex_attention(q, k, v, distance), F.scaled_dot_product_attention(q, k, v, added))
    torch.testing.assert_close(flex_attention(q, k, v, scale=0.3), F.scaled_dot_product_attention(q, k, v, scale=0.3))


def test_masks_by_functions():
    q, k, v = qkv(6, 6)
    mask = create_block_mask(causal, None, None, 6, 6, BLOCK_SIZE=4)
    torch.testing.assert_close(
        flex_attention(q, k, v, block_mask=mask), F.scaled_dot_product_attention(q, k, v, is_causal=True)
    )
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    assert mask.sparsity() == 25
    assert mask.shape == (1, 1, 6, 6)
    window = and_masks(causal, lambda b, h, i, j: i - j < 2)
    assert create_mask(window, None, None, 3, 3)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    either = or_masks(causal, lambda b, h, i, j: j == i + 1)
    assert create_mask(either, 2, None, 2, 3).shape == (2, 1, 2, 3)
    assert create_mask(either, None, None, 2, 3)[0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert create_mask(noop_mask, None, None, 2, 2).all()
    hidden = create_mask(lambda s, b, h, i, j: torch.where(i >= j, s, -math.inf), None, None, 2, 2)
    assert hidden[0, 0].tolist() == [[True, False], [True, True]]


def test_queries_that_see_nothing():
    q, k, v = qkv(6, 6)
    mask = create_block_mask(lambda b, h, i, j: (i > 2) & (j < 4), None, None, 6, 6)
    output, lse = flex_attention(q, k, v, block_mask=mask, return_lse=True)
    assert output[:, :, :3].abs().sum().item() == 0
    assert lse[0, 0, :3].tolist() == [-math.inf] * 3
    expected = torch.logsumexp(q[:, :, 3:] @ k[:, :, :4].mT / 2, -1)
    torch.testing.assert_close(lse[:, :, 3:], expected)
    output.sum().backward()
    assert bool(q.grad.isfinite().all())
    _, more = flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))
    torch.testing.assert_close(more.max_scores, (q @ k.mT / 2).amax(-1))
    assert more.lse is None


def test_grouped_heads_and_derivatives():
    q, k, v = qkv(2, 3, heads=2, key_heads=1)
    torch.testing.assert_close(
        flex_attention(q, k, v, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    )
    mask = create_block_mask(causal, None, None, 2, 3)
    assert gradcheck(lambda *x: flex_attention(*x, lambda s, b, h, i, j: s * (1 + h), mask, enable_gqa=True), (q, k, v))


def test_refusals():
    q, k, v = qkv()
    with pytest.raises(NotImplementedError, match="4D tensors"):
        flex_attention(q[0], k[0], v[0])
    for args, options, phrase in [
        ((q, k[..., :2], v), {}, "same embedding dimension but got E=4 and E=2"),
        ((q, k[:, :1], v[:, :1]), {}, "Hq=2 and Hkv=1"),
        ((q, k[:1], v[:1]), {}, "Bq=2, and Bkv=1"),
        ((q, k, v), {"block_mask": create_block_mask(causal, None, None, 8, 8)}, "q_len=5 and kv_len=6"),
    ]:
        with pytest.raises(ValueError, match=phrase):
            flex_attention(*args, **options)
    with pytest.raises(RuntimeError, match="callable"):
        and_masks(causal, 3)
