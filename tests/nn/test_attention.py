"""Attention against its formula, element by element; masks, heads, transformers."""

import copy
import math

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck

attend = F.scaled_dot_product_attention


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def tensor(array, grad=False):
    return torch.tensor(array, dtype=torch.float64, requires_grad=grad)


def attention(q, k, v, seen=None, added=None, scale=None):
    """For (L, E), (S, E), (S, V): one row after another."""
    scale = 1 / math.sqrt(q.shape[1]) if scale is None else scale
    rows = []
    for i, row in enumerate(q):
        scores = scale * k @ row + (0 if added is None else added[i])
        if seen is not None:
            scores = np.where(seen[i], scores, -np.inf)
        if not np.isfinite(scores).any():
            rows.append(np.zeros(v.shape[1]))
            continue
        weights = np.exp(scores - scores.max())
        rows.append(weights / weights.sum() @ v)
    return np.array(rows)


def close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


def test_formula():
    q, k, v = draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2)
    args = tensor(q), tensor(k), tensor(v)
    close(attend(*args), attention(q, k, v))
    close(attend(*args, scale=0.3), attention(q, k, v, scale=0.3))
    close(attend(*args, is_causal=True), attention(q, k, v, seen=np.tril(np.ones((4, 5), bool))))
    added = draw(4, 5, seed=3)
    close(attend(*args, tensor(added)), attention(q, k, v, added=added))
    seen = np.random.default_rng(4).random((4, 5)) > 0.5
    seen[2] = False
    close(attend(*args, torch.tensor(seen)), attention(q, k, v, seen=seen))
    close(attend(*args, tensor(np.where(seen, 0, -np.inf))), attention(q, k, v, seen=seen))


def test_batches_and_heads():
    q, k, v = draw(2, 3, 4, 5), draw(2, 3, 6, 5, seed=1), draw(2, 3, 6, 2, seed=2)
    y = attend(tensor(q), tensor(k), tensor(v))
    for n, h in np.ndindex(2, 3):
        close(y[n, h], attention(q[n, h], k[n, h], v[n, h]))


def test_grouped_heads_share_keys():
    q, k, v = draw(2, 4, 3, 5), draw(2, 2, 6, 5, seed=1), draw(2, 2, 6, 2, seed=2)
    y = attend(tensor(q), tensor(k), tensor(v), enable_gqa=True)
    for n, h in np.ndindex(2, 4):
        close(y[n, h], attention(q[n, h], k[n, h // 2], v[n, h // 2]))
    with pytest.raises(RuntimeError, match="Number of heads in key and value must divide"):
        attend(tensor(q), tensor(draw(2, 3, 6, 5)), tensor(draw(2, 3, 6, 2)), enable_gqa=True)


def test_derivatives():
    q, k, v = tensor(draw(1, 3, 2), True), tensor(draw(1, 3, 2), True), tensor(draw(1, 3, 1), True)
    added = tensor(draw(3, 3), True)
    seen = torch.tensor([[True, False, True], [False] * 3, [False, False, True]])
    assert gradcheck(attend, (q, k, v, added))
    assert gradcheck(lambda *x: attend(*x, seen), (q, k, v))
    assert gradcheck(lambda *x: attend(*x, is_causal=True), (q, k, v))
    assert gradgradcheck(lambda *x: attend(*x, seen), (q, k, v))


def test_blind_rows_have_a_gradient_of_zero():
    q, k, v = (tensor(draw(3, 2), True) for _ in range(3))
    attend(q, k, v, torch.zeros(3, 3, dtype=torch.bool)).sum().backward()
    for x in (q, k, v):
        assert x.grad.abs().sum().item() == 0


def test_causal_rows_do_not_see_the_future():
    q, k, v = tensor(draw(4, 3)), tensor(draw(4, 3)), tensor(draw(4, 3))
    before = attend(q, k, v, is_causal=True)
    k[3], v[3] = 100.0, 7.0
    assert torch.equal(before[:3], attend(q, k, v, is_causal=True)[:3])


def test_dropout():
    torch.manual_seed(0)
    q, k = tensor(draw(2, 50, 4)), tensor(draw(2, 60, 4))
    ones = torch.ones(2, 60, 1, dtype=torch.float64)
    kept = attend(q, k, ones, dropout_p=0.5)
    assert abs(kept.mean().item() - 1) < 0.1
    assert kept.std().item() > 0.01
    assert attend(q, k, ones, dropout_p=1.0).abs().sum().item() == 0
    with pytest.raises(RuntimeError, match=r"between 0 and 1, but got 1\.5"):
        attend(q, k, ones, dropout_p=1.5)


def test_empty():
    q, k, v = torch.ones(2, 3, 4), torch.ones(2, 0, 4), torch.ones(2, 0, 5)
    assert attend(q, k, v).tolist() == [[[0.0] * 5] * 3] * 2
    assert attend(q[:, :0], torch.ones(2, 6, 4), torch.ones(2, 6, 5)).shape == (2, 0, 5)


def test_refusals():
    q, k, v = tensor(draw(4, 3)), tensor(draw(5, 3)), tensor(draw(5, 2))
    for args, options, kind, phrase in [
        ((q, k, v, torch.zeros(4, 5)), {"is_causal": True}, RuntimeError, "Explicit attn_mask should not be set"),
        ((q, k, v, torch.zeros(4, 5).long()), {}, RuntimeError, "Expected attn_mask dtype to be bool or float"),
        ((q, k.float(), v), {}, RuntimeError, "to have the same dtype"),
        ((q[0], k, v), {}, RuntimeError, "at least 2 dimensional"),
        ((q, k, v, torch.zeros(2, 4, 5)), {}, RuntimeError, "doesn't match the broadcast shape"),
        ((q, k, [1]), {}, TypeError, "argument 'value' .position 3. must be Tensor, not list"),
    ]:
        with pytest.raises(kind, match=phrase):
            attend(*args, **options)


# several heads --------------------------------------------------------------------------------------------------------


def multihead(module, q, k, v):
    """The module's output for one sample, head by head."""
    w, b = module.in_proj_weight.detach().numpy(), module.in_proj_bias.detach().numpy()
    size, heads = module.embed_dim, module.num_heads
    projected = [x @ w[i * size : (i + 1) * size].T + b[i * size : (i + 1) * size] for i, x in enumerate((q, k, v))]
    parts = [attention(*(np.split(x, heads, 1)[h] for x in projected)) for h in range(heads)]
    return np.concatenate(parts, 1) @ module.out_proj.weight.detach().numpy().T + module.out_proj.bias.detach().numpy()


def build(**options):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(6, 3, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.tensor(draw(*parameter.shape)))
    return module


def test_heads():
    module = build()
    q, k, v = draw(4, 2, 6), draw(5, 2, 6, seed=1), draw(5, 2, 6, seed=2)
    y, weights = module(tensor(q), tensor(k), tensor(v))
    assert weights.shape == (2, 4, 5)
    close(weights.sum(-1), np.ones((2, 4)))
    for n in range(2):
        close(y[:, n], multihead(module, q[:, n], k[:, n], v[:, n]))
    alone, _ = module(tensor(q[:, 0]), tensor(k[:, 0]), tensor(v[:, 0]))
    close(alone, y[:, 0].detach().numpy())
    without, none = module(tensor(q), tensor(k), tensor(v), need_weights=False)
    assert none is None
    close(without, y.detach().numpy())
    each = module(tensor(q), tensor(k), tensor(v), average_attn_weights=False)[1]
    assert each.shape == (2, 3, 4, 5)
    close(each.mean(1), weights.detach().numpy())


def test_one_input_or_three_equal_ones():
    """The projections are joined where the inputs are one object; the result must not tell."""
    module, x, m = build(), tensor(draw(4, 2, 6)), tensor(draw(5, 2, 6))
    close(module(x, x, x)[0], module(x, x.clone(), x.clone())[0].detach().numpy())
    close(module(x, m, m)[0], module(x, m, m.clone())[0].detach().numpy())
    first = build(batch_first=True)
    close(first(x, x, x)[0], module(*[x.transpose(0, 1)] * 3)[0].transpose(0, 1).detach().numpy())


def test_masks_leave_out_keys():
    module, x, m = build(), tensor(draw(4, 2, 6)), tensor(draw(5, 2, 6))
    padding = torch.tensor([[False, False, False, True, True]] * 2)
    expected = module(x, m[:3], m[:3])[0].detach().numpy()
    for need in (True, False):
        close(module(x, m, m, key_padding_mask=padding, need_weights=need)[0], expected)
        close(module(x, m, m, attn_mask=padding[:1].expand(4, 5), need_weights=need)[0], expected)
        added = torch.zeros(2, 5, dtype=torch.float64).masked_fill(padding, -math.inf)
        close(module(x, m, m, key_padding_mask=added, need_weights=need)[0], expected)
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    expected = module(x, x, x, attn_mask=causal)[0].detach().numpy()
    close(module(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0], expected)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        module(x, x, x, is_causal=True)


def test_extra_keys():
    x = tensor(draw(4, 2, 6))
    zero = build(add_zero_attn=True)
    weights = zero(x, x, x)[1]
    assert weights.shape == (2, 4, 5)
    learned = build(add_bias_kv=True)
    assert learned(x, x, x, key_padding_mask=torch.zeros(2, 4).bool())[1].shape == (2, 4, 5)
    everything = torch.ones(2, 4, dtype=torch.bool)
    assert bool(zero(x, x, x, key_padding_mask=everything)[0].isfinite().all())  # the zero key is left


def test_parameters():
    module = nn.MultiheadAttention(8, 2, kdim=3, vdim=5, add_bias_kv=True)
    assert [n for n, _ in module.named_parameters()] == [
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "in_proj_bias",
        "bias_k",
        "bias_v",
        "out_proj.weight",
        "out_proj.bias",
    ]
    assert module.k_proj_weight.shape == (8, 3)
    assert module.in_proj_weight is None
    assert not nn.MultiheadAttention(8, 2).in_proj_bias.any()
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(8, 3)


def test_multihead_derivatives():
    module, x, m = build(), tensor(draw(2, 1, 6), True), tensor(draw(3, 1, 6), True)
    assert gradcheck(lambda x, m: module(x, m, m)[0], (x, m))
    module(x, m, m)[0].sum().backward()
    assert all(p.grad is not None for p in module.parameters())


def test_multihead_refusals():
    module, x = build(), tensor(draw(4, 2, 6))
    for args, options, kind, phrase in [
        ((x[None], x, x), {}, AssertionError, "received 4-D query tensor"),
        ((x, x[0], x), {}, AssertionError, "expected `key` and `value` to be 3-D"),
        ((x[..., :4], x, x), {}, AssertionError, "was expecting embedding dimension of 6, but got 4"),
        ((x, x, x[:3]), {}, AssertionError, "does not match value shape"),
        ((x, x, x), {"key_padding_mask": torch.zeros(2, 3).bool()}, AssertionError, r"shape\[1\] to be 4, but got 3"),
        ((x, x, x), {"attn_mask": torch.zeros(4, 3)}, RuntimeError, "The shape of the 2D attn_mask"),
        (
            (x, x, x),
            {"attn_mask": torch.zeros(4, 4).long()},
            AssertionError,
            "only bool and floating types of attn_mask",
        ),
    ]:
        with pytest.raises(kind, match=phrase):
            module(*args, **options)


# transformers ---------------------------------------------------------------------------------------------------------


def test_encoder_layer_by_its_parts():
    torch.manual_seed(0)
    x = tensor(draw(4, 2, 6))
    for first in (False, True):
        layer = nn.TransformerEncoderLayer(6, 2, 8, norm_first=first, dtype=torch.float64).eval()

        def network(x, layer=layer):
            return layer.linear2(F.relu(layer.linear1(x)))

        def own(x, layer=layer):
            return layer.self_attn(x, x, x)[0]

        if first:
            y = x + own(layer.norm1(x))
            y = y + network(layer.norm2(y))
        else:
            y = layer.norm1(x + own(x))
            y = layer.norm2(y + network(y))
        close(layer(x), y.detach().numpy())


def test_decoder_attends_to_the_memory():
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0, dtype=torch.float64)
    x, memory = tensor(draw(4, 2, 6)), tensor(draw(5, 2, 6))
    y = layer.norm1(x + layer.self_attn(x, x, x)[0])
    y = layer.norm2(y + layer.multihead_attn(y, memory, memory)[0])
    y = layer.norm3(y + layer.linear2(F.relu(layer.linear1(y))))
    close(layer(x, memory), y.detach().numpy())
    masked = layer(x, memory, memory_key_padding_mask=torch.tensor([[False] * 3 + [True] * 2] * 2))
    close(masked, layer(x, memory[:3]).detach().numpy())


def test_stacks_are_copies():
    layer = nn.TransformerEncoderLayer(6, 2, 8)
    encoder = nn.TransformerEncoder(layer, 3, nn.LayerNorm(6))
    assert encoder.layers[0] is not layer
    assert len({id(p) for p in encoder.parameters()}) == len(list(encoder.parameters()))
    first, second = encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight
    assert torch.equal(first, second)
    assert len(list(copy.deepcopy(encoder).parameters())) == 3 * 12 + 2


def test_transformer():
    torch.manual_seed(0)
    sizes = {"d_model": 6, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": 8}
    module = nn.Transformer(**sizes, dropout=0.0)
    src, tgt = torch.randn(5, 2, 6), torch.randn(4, 2, 6)
    y = module(src, tgt)
    assert y.shape == (4, 2, 6)
    first = nn.Transformer(**sizes, dropout=0.0, batch_first=True)
    first.load_state_dict(module.state_dict())
    torch.testing.assert_close(first(src.transpose(0, 1), tgt.transpose(0, 1)).transpose(0, 1), y)
    torch.testing.assert_close(module(src[:, 0], tgt[:, 0]), y[:, 0])
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    causal = module(src, tgt, tgt_mask=mask)
    changed = tgt.clone()
    changed[3] = 9.0
    torch.testing.assert_close(module(src, changed, tgt_mask=mask)[:3], causal[:3])
    bound = math.sqrt(6 / (6 + 8))
    assert module.encoder.layers[0].linear1.weight.abs().max().item() <= bound
    for bad, phrase in [((src, tgt[:, :1]), "batch number of src and tgt"), ((src[..., :4], tgt), "feature number")]:
        with pytest.raises(RuntimeError, match=phrase):
            module(*bad)


def test_square_subsequent_mask():
    inf = -math.inf
    assert nn.Transformer.generate_square_subsequent_mask(3).tolist() == [[0, inf, inf], [0, 0, inf], [0, 0, 0]]
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not sine"):
        nn.TransformerEncoderLayer(6, 2, activation="sine")
    assert nn.TransformerEncoderLayer(6, 2, activation=torch.sin).activation is torch.sin
