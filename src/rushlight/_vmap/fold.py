"""Convolutions, pooling, paddings and norms: the batch goes into the leading dimension, the channels or the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

from .dims import front
from .pointwise import aligned
from .table import family, looped, rule, whole

__all__: list[str] = []


def leading(trailing: int) -> Callable[..., Any]:
    """The rule of an operator on the last dimensions: all before them become one."""

    def folded(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
        count = value.dim() - 1
        if not trailing <= count <= trailing + 1:
            return call(value[0] if size else value.new_zeros(value.shape[1:]), *rest)  # which says what is expected
        lead = value.shape[: value.dim() - trailing]
        result = call(value.reshape(-1, *value.shape[len(lead) :]), *rest)
        if isinstance(result, Tensor):
            return result.view(*lead, *result.shape[1:])
        parts = [part.view(*lead, *part.shape[1:]) for part in result]
        return type(result)(parts)

    return folded


for _n in (1, 2, 3):
    family(
        *(f"avg_pool{_n}d", f"adaptive_avg_pool{_n}d", f"adaptive_max_pool{_n}d", f"max_pool{_n}d"),
        *(f"max_pool{_n}d_with_indices", f"reflection_pad{_n}d", f"replication_pad{_n}d"),
    )(lambda call, overload, n=_n: leading(n + 1))


@rule("pad", "_pad_circular")
def pad(call: Any, level: int, size: int, mask: int, value: Tensor, widths: Any, *rest: Any) -> Any:
    """Constants go anywhere; other paddings need a batch and channels before the padded dimensions."""
    if rest and rest[0] == "constant":
        return rushlight.constant_pad_nd(value, widths, rest[1] or 0)
    return leading(len(widths) // 2 + 1)(call, level, size, mask, value, widths, *rest)


@rule("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle")
def shuffle(call: Any, level: int, size: int, mask: int, value: Tensor, factor: int) -> Any:
    """Dimensions before the channels are left alone."""
    name = call.__name__
    if name.startswith("pixel"):
        if value.dim() < 4:
            raise RuntimeError(
                f"{name} expects input to have at least 3 dimensions, but got input with {value.dim() - 1} dimension(s)"
            )
        return call(value, factor)
    if value.dim() < 4:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {value.shape[1:]}")
    return call(value.flatten(0, 1), factor).view(value.shape)


# ---- convolutions


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def convolve(
    call: Any, level: int, size: int, mask: int, x: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any
) -> Any:
    """A batch of inputs is one longer batch, a batch of weights more groups."""
    spatial = int(call.__name__[-2])
    single = x.dim() - (mask & 1) == spatial + 1
    if not mask & 6:
        lead = x.shape[: x.dim() - spatial - 1]
        out = call(x.reshape(-1, *x.shape[len(lead) :]), weight, bias, *rest)
        return out.view(*lead, *out.shape[1:])
    separate = bias is not None and bool(mask & 4)
    if not mask & 2:
        out = convolve(call, level, size, 1, x, weight, None, *rest) if mask & 1 else call(x, weight, None, *rest)
        return _plus_bias(out, bias, mask & 1, mask, spatial)
    x = x if mask & 1 else front(x, size)
    x = x.unsqueeze(1) if single else x
    arguments = list(rest)
    arguments[3] *= size  # groups
    joined = x.transpose(0, 1).flatten(1, 2)  # (N, B C, ...)
    out = call(joined, weight.flatten(0, 1), None, *arguments)
    out = out.unflatten(1, (size, out.shape[1] // size)).transpose(0, 1)
    out = out.squeeze(1) if single else out
    return out if bias is None else _plus_bias(out, bias, 1, mask if separate else 0, spatial)


def _plus_bias(out: Tensor, bias: Tensor | None, out_batched: int, mask: int, spatial: int) -> Tensor:
    """The bias of each channel added."""
    assert bias is not None
    shaped = bias.view(*bias.shape, *(1,) * spatial)
    return rushlight.add(*aligned(out_batched | (mask & 4) >> 1, out, shaped))


@whole("convolution")
def convolution(
    call: Any,
    x: Tensor,
    w: Tensor,
    b: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    more: Any,
    g: int,
) -> Any:
    """The operator of its number of dimensions."""
    n = w.dim() - 2
    if transposed:
        return getattr(rushlight, f"conv_transpose{n}d")(x, w, b, stride, padding, more, g, dilation)
    return getattr(rushlight, f"conv{n}d")(x, w, b, stride, padding, dilation, g)


# ---- norms


@rule("layer_norm", "rms_norm")
def layer_norm(call: Any, level: int, size: int, mask: int, x: Tensor, shape: Any, weight: Any, *rest: Any) -> Any:
    """The last dimensions; weights that differ between samples are applied afterwards."""
    x = x if mask & 1 else front(x, size)
    if x.dim() - 1 < len(shape):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
            f"got input of size{list(x.shape[1:])}"
        )
    layer = call.__name__ == "layer_norm"
    if not mask & (12 if layer else 4):
        return call(x, shape, weight, *rest)
    out = call(x, shape, None, None, *rest[1:]) if layer else call(x, shape, None, *rest)
    if weight is not None:
        out = rushlight.mul(*aligned(1 | (mask & 4) >> 1, out, weight))
    if layer and rest[0] is not None:
        out = rushlight.add(*aligned(1 | (mask & 8) >> 2, out, rest[0]))
    return out


@rule("group_norm")
def group_norm(
    call: Any, level: int, size: int, mask: int, x: Tensor, groups: int, weight: Any, bias: Any, eps: float, cudnn: bool
) -> Any:
    """A longer batch; weights that differ between samples are applied afterwards."""
    x = x if mask & 1 else front(x, size)
    batched = mask & 12
    own = (None, None) if batched else (weight, bias)
    out = call(x.flatten(0, 1), groups, *own, eps, cudnn).view(x.shape)
    return _affine(out, weight, bias, mask >> 2, x.dim() - 3) if batched else out


def _affine(out: Tensor, weight: Any, bias: Any, mask: int, spatial: int) -> Tensor:
    """Weight and bias of each channel; bits 0 and 1 of the mask say which are batched."""
    if weight is not None:
        out = rushlight.mul(*aligned(1 | (mask & 1) << 1, out, weight.view(*weight.shape, *(1,) * spatial)))
    if bias is not None:
        out = rushlight.add(*aligned(1 | mask & 2, out, bias.view(*bias.shape, *(1,) * spatial)))
    return out


@rule("batch_norm")
def batch_norm(
    call: Any,
    level: int,
    size: int,
    mask: int,
    x: Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    *rest: Any,
) -> Any:
    """The samples' channels side by side; what each channel has is repeated or joined likewise."""
    if training and mean is not None and (mask >> 3 & 3) != 3:
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched. Please make the running statistics batched, or do without them "
            "(track_running_stats=False, or eval mode)."
        )
    x = x if mask & 1 else front(x, size)
    spatial = x.dim() - 3
    joined = x.transpose(0, 1).flatten(1, 2)
    stats = []
    for bit, own in ((8, mean), (16, var)):
        full = own if own is None or mask & bit else front(own, size)
        stats.append(None if full is None else full.reshape(-1))
    out = call(joined, None, None, *stats, training, *rest)
    if training and mean is not None:
        for own, written in ((mean, stats[0]), (var, stats[1])):
            if written is not None and written.data_ptr() != own.data_ptr():
                own.copy_(written.view_as(own))
    out = out.view(joined.shape).unflatten(1, (size, x.shape[2])).transpose(0, 1)
    return _affine(out, weight, bias, mask >> 1, spatial)


@rule("instance_norm")
def instance_norm(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
    """Sample by sample."""
    return looped(call, level, size, mask, *values)


@rule("_rnn_layer")
def rnn_layer(
    call: Any,
    level: int,
    size: int,
    mask: int,
    mode: str,
    x: Tensor,
    batch_sizes: Any,
    h: Tensor,
    c: Any,
    *rest: Any,
) -> Any:
    """More sequences in one batch, where the weights are the same for all; packed ones sample by sample."""
    if batch_sizes is not None or mask >> 5:
        return looped(call, level, size, mask, mode, x, batch_sizes, h, c, *rest)
    x = x if mask & 2 else front(x, size)
    states = [t if t is None or mask >> i & 1 else front(t, size) for i, t in ((3, h), (4, c))]
    joined = [None if t is None else t.flatten(0, 1) for t in states]
    steps, batch, width = x.shape[1:]
    output, *ends = call(mode, x.transpose(0, 1).reshape(steps, size * batch, width), None, *joined, *rest)
    output = output.view(steps, size, batch, -1).transpose(0, 1)
    return [output, *[end.view(size, batch, -1) for end in ends]]
