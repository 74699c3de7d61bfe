"""Attention and transformers against PyTorch's: values, gradients, masks, initial values, refusals."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import same, same_error, same_module, same_warning  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SDPA = "nn.functional.scaled_dot_product_attention"
F64 = torch.float64
INF = float("inf")


def randn(*shape, dtype=F64, grad=True):
    return torch.randn(shape, dtype=dtype).requires_grad_(grad)


SHAPES = [
    ((5, 2), (6, 2), (6, 3)),
    ((3, 5, 2), (3, 6, 2), (3, 6, 3)),
    ((2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 3)),
    ((2, 5, 2), (1, 6, 2), (1, 6, 3)),
    ((2, 4, 0, 8), (2, 4, 6, 8), (2, 4, 6, 3)),
    ((2, 4, 5, 8), (2, 4, 0, 8), (2, 4, 0, 3)),
    ((2, 5, 0), (2, 6, 0), (2, 6, 3)),
]


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("shapes", SHAPES)
def test_attention(shapes, dtype):
    torch.manual_seed(0)
    qkv = [randn(*s, dtype=dtype) for s in shapes]
    same(SDPA, *qkv, second=dtype == F64)
    same(SDPA, *qkv, is_causal=True)
    same(SDPA, *qkv, scale=0.3)
    same(SDPA, *qkv, scale=-1.0)
    # draws only where there is something to draw for
    same(SDPA, *qkv, dropout_p=0.4)
    same(SDPA, *qkv, None, 0.4, True)


def test_masks():
    torch.manual_seed(0)
    qkv = [randn(2, 4, 5, 8), randn(2, 4, 6, 8), randn(2, 4, 6, 3)]
    for shape in [(5, 6), (1, 6), (5, 1), (2, 1, 5, 6), (2, 4, 1, 6)]:
        seen = torch.rand(shape) > 0.4
        same(SDPA, *qkv, seen, second=True)
        same(SDPA, *qkv, randn(*shape), second=True)
        same(SDPA, *qkv, torch.zeros(shape, dtype=F64).masked_fill(~seen, -INF))
        same(SDPA, *qkv, randn(*shape), dropout_p=0.3)
    same(SDPA, *qkv, randn(5, 6, dtype=torch.float32, grad=False))


@pytest.mark.parametrize("mask", [torch.zeros(5, 6).bool(), torch.full((5, 6), -INF, dtype=F64)])
def test_rows_that_see_nothing(mask):
    qkv = [randn(2, 5, 8), randn(2, 6, 8), randn(2, 6, 3)]
    same(SDPA, *qkv, mask)
    mask = mask.clone()
    mask[1:3] = 1
    same(SDPA, *qkv, mask)


def test_grouped_heads():
    for heads, keys, values in [(4, 2, 2), (4, 4, 4), (4, 1, 1), (6, 3, 3), (4, 2, 1)]:
        qkv = randn(2, heads, 5, 8), randn(2, keys, 6, 8), randn(2, values, 6, 3)
        same(SDPA, *qkv, enable_gqa=True)
        same(SDPA, *qkv, is_causal=True, enable_gqa=True)
    same(SDPA, randn(4, 5, 8), randn(2, 6, 8), randn(2, 6, 3), enable_gqa=True)


def test_attention_refusals():
    q, k, v = randn(2, 4, 5, 8), randn(2, 4, 6, 8), randn(2, 4, 6, 3)
    same_error(
        SDPA, q, k, v, torch.zeros(5, 6, dtype=F64), is_causal=True, phrase="Explicit attn_mask should not be set"
    )
    same_error(
        SDPA, q, k, v, torch.zeros(5, 6).long(), phrase="Expected attn_mask dtype to be bool or float or to match"
    )
    same_error(SDPA, q.float(), k.float(), v.float(), torch.zeros(5, 6, dtype=F64), phrase="Expected attn_mask dtype")
    same_error(SDPA, q, k, v, torch.zeros(5, 7, dtype=F64), phrase="must match the size of tensor b")
    same_error(SDPA, q, k, v, torch.zeros(6, dtype=F64), phrase="Dimension out of range")
    same_error(SDPA, q, k, v, torch.zeros(3, 2, 4, 5, 6, dtype=F64), phrase="doesn't match the broadcast shape")
    same_error(SDPA, randn(5), randn(5), randn(5), phrase="at least 2 dimensional")
    same_error(SDPA, q, k.float(), v, phrase="Expected query, key, and value to have the same dtype")
    same_error(SDPA, q, randn(2, 4, 6, 7), v)
    same_error(SDPA, q, k, randn(2, 4, 7, 3))
    same_error(SDPA, q, randn(3, 4, 6, 8), v)
    same_error(SDPA, q, k, v, dropout_p=2.0, phrase="dropout probability has to be between 0 and 1, but got 2")
    same_error(
        SDPA, q, randn(2, 3, 6, 8), randn(2, 3, 6, 3), enable_gqa=True, phrase="Number of heads in key and value"
    )
    same_error(SDPA, randn(5, 8), randn(6, 8), randn(6, 3), enable_gqa=True)
    same_error(SDPA, [1], k, v, phrase="must be Tensor, not list")
    same_error(SDPA, q, k, v, None, 0.0, True, 0.5, phrase="positional arguments")


# several heads --------------------------------------------------------------------------------------------------------

LAYOUTS = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "bias": False},
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_multihead(layout, training):
    torch.manual_seed(0)
    x, k = randn(5, 3, 8), randn(6, 3, 8)
    options = {"dtype": F64, "dropout": 0.3, **layout}
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[1, 3:] = padding[2, 5:] = True
    unseen = torch.rand(5, 6) > 0.7
    unseen[:, 0] = False
    for inputs in ([x, x, x], [x, k, k], [x, k, randn(6, 3, 8)]):
        square = inputs[1] is x
        for call in ({}, {"need_weights": False}, {"average_attn_weights": False}):
            same_module("MultiheadAttention", (8, 2), options, inputs, training, **call)
            if square:
                continue
            masked = {"key_padding_mask": padding, "attn_mask": unseen}
            same_module("MultiheadAttention", (8, 2), options, inputs, training, **masked, **call)
            added = {"attn_mask": randn(6, 5, 6)}
            same_module("MultiheadAttention", (8, 2), options, inputs, training, **added, **call)


def test_multihead_layouts():
    torch.manual_seed(0)
    same_module(
        "MultiheadAttention",
        (8, 2),
        {"kdim": 3, "vdim": 5, "dtype": F64},
        [randn(5, 2, 8), randn(6, 2, 3), randn(6, 2, 5)],
    )
    options = {"batch_first": True, "kdim": 3, "vdim": 4, "dtype": F64}
    same_module("MultiheadAttention", (8, 2), options, [randn(2, 5, 8), randn(2, 6, 3), randn(2, 6, 4)])
    x = randn(2, 5, 8)
    same_module("MultiheadAttention", (8, 4), {"batch_first": True, "dtype": F64}, [x, x, x], second=True)
    one, other = randn(5, 8), randn(6, 8)
    for first in (False, True):
        settings = {"batch_first": first, "dtype": F64}
        same_module("MultiheadAttention", (8, 2), settings, [one, one, one])
        padding = torch.tensor([False, False, True, False, True, False])
        same_module("MultiheadAttention", (8, 2), settings, [one, other, other], key_padding_mask=padding)
        same_module("MultiheadAttention", (8, 2), settings, [one, other, other], attn_mask=randn(2, 5, 6))


def test_multihead_causal_hint():
    x = randn(5, 3, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=F64)
    for weights in (True, False):
        same_module(
            "MultiheadAttention",
            (8, 2),
            {"dtype": F64},
            [x, x, x],
            attn_mask=mask,
            is_causal=True,
            need_weights=weights,
        )


def test_multihead_static_keys():
    def call(package, x, k, v, w, b):
        f = package.nn.functional.multi_head_attention_forward
        return f(x, x, x, 8, 2, w, None, None, None, False, 0.0, b, None, static_k=k, static_v=v)

    same(call, randn(5, 3, 8), randn(6, 7, 4), randn(6, 7, 4), randn(24, 8), randn(8, 8))
    same_error(
        call, randn(5, 3, 8), randn(5, 7, 4), randn(6, 7, 4), randn(24, 8), randn(8, 8), phrase="static_k.size(0) of 6"
    )
    same_error(
        call, randn(5, 3, 8), randn(6, 7, 4), randn(6, 7, 3), randn(24, 8), randn(8, 8), phrase="static_v.size(2) of 4"
    )


def test_multihead_refusals():
    def call(package, *inputs, **masks):
        return package.nn.MultiheadAttention(8, 2)(*inputs, **masks)

    q, k = torch.zeros(5, 3, 8), torch.zeros(6, 3, 8)
    same_error("nn.MultiheadAttention", 8, 3, phrase="embed_dim must be divisible by num_heads")
    same_error("nn.MultiheadAttention", 0, 1, phrase="must be greater than 0")
    same_error("nn.MultiheadAttention", 8, -2, phrase="must be greater than 0")
    same_error(call, q[None], k, k, phrase="query should be unbatched 2D or batched 3D tensor but received 4-D query")
    same_error(call, q, k[:, 0], k, phrase="For batched (3-D) `query`, expected `key` and `value` to be 3-D")
    same_error(call, q[:, 0], k, k, phrase="For unbatched (2-D) `query`, expected `key` and `value` to be 2-D")
    same_error(call, torch.zeros(5, 3, 7), k, k, phrase="was expecting embedding dimension of 8, but got 7")
    same_error(call, q, k, torch.zeros(7, 3, 8), phrase="does not match value shape")
    same_error(call, q, torch.zeros(6, 2, 8), torch.zeros(6, 2, 8))
    flags = torch.zeros(3, 6).bool()
    same_error(
        call, q, k, k, key_padding_mask=flags[:, :5], phrase="Expected key_padded_mask.shape[1] to be 6, but got 5"
    )
    same_error(call, q, k, k, key_padding_mask=flags[0], phrase="expected `key_padding_mask` to be `None` or 2-D")
    same_error(call, q, k, k, key_padding_mask=flags.long(), phrase="only bool and floating types of key_padding_mask")
    same_error(call, q, k, k, attn_mask=torch.zeros(5, 5), phrase="The shape of the 2D attn_mask is")
    same_error(call, q, k, k, attn_mask=torch.zeros(3, 5, 6), phrase="The shape of the 3D attn_mask is")
    same_error(call, q, k, k, attn_mask=torch.zeros(3, 2, 5, 6), phrase="2-D or 3-D but found 4-D tensor instead")
    same_error(call, q, k, k, attn_mask=torch.zeros(5, 6).long(), phrase="only bool and floating types of attn_mask")
    same_error(call, q, k, k, is_causal=True, phrase="Need attn_mask if specifying the is_causal hint")
    same_error(
        call, q[:, 0], k[:, 0], k[:, 0], attn_mask=torch.zeros(1, 5, 6), phrase="Expected `attn_mask` shape to be"
    )
    same_warning(
        "nn.functional.multi_head_attention_forward",
        q, k, k, 8, 2, torch.zeros(24, 8), None, None, None, False, 0.0, torch.zeros(8, 8), None,
        key_padding_mask=torch.zeros(3, 6), attn_mask=torch.zeros(5, 6).bool(),
        phrase="Support for mismatched key_padding_mask and attn_mask is deprecated",
    )  # fmt: skip


# transformers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers(activation, norm_first, training):
    options = {"dim_feedforward": 16, "activation": activation, "norm_first": norm_first, "dropout": 0.2, "dtype": F64}
    for extra in ({}, {"batch_first": True}, {"bias": False, "layer_norm_eps": 1e-3}):
        x, memory = randn(3, 3, 8), randn(3, 3, 8)
        same_module("TransformerEncoderLayer", (8, 2), {**options, **extra}, [x], training)
        same_module("TransformerDecoderLayer", (8, 2), {**options, **extra}, [x, memory], training)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=F64)
    padding = torch.tensor([[False, False, True]] * 3)
    same_module("TransformerEncoderLayer", (8, 2), options, [x], training, src_mask=mask, is_causal=True)
    same_module("TransformerEncoderLayer", (8, 2), options, [x], training, src_mask=mask, src_key_padding_mask=padding)
    masks = {"tgt_mask": mask, "memory_mask": randn(3, 3), "memory_key_padding_mask": padding.to(F64)}
    same_module("TransformerDecoderLayer", (8, 2), options, [x, memory], training, **masks)


def test_whole_transformer():
    sizes = {"d_model": 8, "nhead": 2, "num_encoder_layers": 2, "num_decoder_layers": 2, "dim_feedforward": 16}
    for extra in ({}, {"batch_first": True, "norm_first": True}, {"bias": False, "activation": "gelu", "dropout": 0.0}):
        same_module(
            "Transformer",
            (),
            {**sizes, **extra},
            [randn(3, 3, 8, dtype=torch.float32), randn(3, 3, 8, dtype=torch.float32)],
        )
    same_module("Transformer", (), {**sizes, "dtype": F64}, [randn(5, 8), randn(4, 8)])
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=F64)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[:, 3:] = True
    masks = {
        "tgt_mask": mask,
        "tgt_is_causal": True,
        "src_key_padding_mask": padding,
        "memory_key_padding_mask": padding,
    }
    same_module("Transformer", (), {**sizes, "dtype": F64}, [randn(5, 3, 8), randn(4, 3, 8)], **masks)


def test_stacks():
    def run(package, x, memory, mask):
        package.manual_seed(0)
        nn = package.nn
        layer = nn.TransformerEncoderLayer(8, 2, 16, dtype=package.float64)
        encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8, dtype=package.float64), enable_nested_tensor=False)
        layer = nn.TransformerDecoderLayer(8, 2, 16, dtype=package.float64)
        decoder = nn.TransformerDecoder(layer, 2)
        package.manual_seed(1)
        return decoder(x, encoder(memory, mask=mask), tgt_mask=mask, tgt_is_causal=True)

    same(run, randn(4, 3, 8), randn(4, 3, 8), torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=F64))


def test_square_subsequent_mask():
    for size, dtype in itertools.product([0, 1, 4], [None, F64]):
        same("nn.Transformer.generate_square_subsequent_mask", size, dtype=dtype)


def test_transformer_refusals():
    def call(package, src, tgt, **options):
        return package.nn.Transformer(8, 2, 1, 1, 16, **options)(src, tgt)

    def encode(package, src, **masks):
        return package.nn.TransformerEncoderLayer(8, 2, 16)(src, **masks)

    x = torch.zeros(5, 3, 8)
    same_error(call, x, torch.zeros(4, 2, 8), phrase="the batch number of src and tgt must be equal")
    same_error(call, x, torch.zeros(4, 2, 8), batch_first=True, phrase="the batch number of src and tgt must be equal")
    same_error(call, torch.zeros(5, 3, 7), x, phrase="the feature number of src and tgt must be equal to d_model")
    same_error(call, x, torch.zeros(4, 3, 7), phrase="the feature number of src and tgt must be equal to d_model")
    same_error(call, x[:, 0], x)
    same_error("nn.TransformerEncoderLayer", 8, 2, activation="x", phrase="activation should be relu/gelu, not x")
    same_error(encode, x, src_mask=torch.zeros(5, 5).long(), phrase="only bool and floating types of src_mask")
    same_error(encode, x, src_mask=torch.zeros(4, 5), phrase="The shape of the 2D attn_mask is")
    same_error(encode, x, is_causal=True, phrase="Need attn_mask if specifying the is_causal hint")
