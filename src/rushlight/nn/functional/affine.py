"""Bilinear maps; the linear map is an operator of the core."""

from __future__ import annotations

from rushlight import Tensor

__all__ = ["bilinear"]


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_k = x1ᵀ W_k x2 + b_k, for `input1` (*, in1), `input2` (*, in2), `weight` (out, in1, in2), `bias` (out).

    The dimensions `*` of both inputs must be equal (RuntimeError).
    """
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for dim, (size1, size2) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if size1 != size2:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {size1} and {size2}")
    if weight.dim() != 3:
        raise RuntimeError(f"bilinear(): expected weight of shape (out, in1, in2), but got {list(weight.shape)}")
    for name, size, dim in (("input1", input1.size(-1), 1), ("input2", input2.size(-1), 2)):
        if size != weight.size(dim):
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {size} but expected {weight.size(dim)}"
            )
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.size(0)} but expected {weight.size(0)}"
        )
    out_features, in1, in2 = weight.shape
    left = input1.reshape(-1, in1) @ weight.transpose(0, 1).reshape(in1, out_features * in2)
    right = input2.reshape(-1, in2, 1)
    result = (left.reshape(-1, out_features, in2) @ right).reshape(*input1.shape[:-1], out_features)
    return result if bias is None else result + bias
