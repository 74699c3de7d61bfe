"""Dropout of numbers, of channels, and the forms that keep the statistics of SELU."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, set each number to zero with probability `p` and scale the others by 1 / (1 - p).

    `p` outside [0, 1] raises ValueError.
    """
    _check_probability(p)
    return rushlight.dropout_(input, p, training) if inplace else rushlight.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """In training, set each number to SELU's floor with probability `p`, then restore mean 0 and variance 1.

    `p` outside [0, 1] raises ValueError. From "Self-normalizing neural networks", Klambauer et al. 2017.
    """
    _check_probability(p)
    return (rushlight.alpha_dropout_ if inplace else rushlight.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels of an input of shape (N, C, ...).

    `p` outside [0, 1] raises ValueError, fewer than two dimensions RuntimeError.
    """
    _check_probability(p)
    return (rushlight.feature_alpha_dropout_ if inplace else rushlight.feature_alpha_dropout)(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, drop whole channels of an input of shape (N, C, L) or (C, L) with probability `p`.

    `p` outside [0, 1] raises ValueError, an input of other than two or three dimensions RuntimeError.
    """
    _check_probability(p)
    dims = input.dim()
    if dims not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, batched=dims == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, drop whole channels of an input of shape (N, C, H, W) with probability `p`.

    `p` outside [0, 1] raises ValueError. Like PyTorch it takes three dimensions as (N, C, L), with a warning.
    """
    _check_probability(p)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    elif input.dim() != 4:
        _warn_of_dimensions(input, "dropout2d", "2 spatial dimensions", "3D or 4D")
    return _drop_channels(input, p, training, inplace, batched=True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, drop whole channels of an input of shape (N, C, D, H, W) or (C, D, H, W) with probability `p`.

    `p` outside [0, 1] raises ValueError.
    """
    _check_probability(p)
    if input.dim() not in (4, 5):
        _warn_of_dimensions(input, "dropout3d", "3 spatial dimensions", "4D or 5D")
    return _drop_channels(input, p, training, inplace, batched=input.dim() != 4)


def _warn_of_dimensions(input: Tensor, name: str, spatial: str, expected: str) -> None:
    warnings.warn(
        f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a "
        "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial}, a channel dimension, and an optional "
        f"batch dimension (i.e. {expected} inputs).",
        stacklevel=3,
    )


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    """Zero whole channels; without a batch dimension the channels come first."""
    drop = rushlight.feature_dropout_ if inplace else rushlight.feature_dropout
    if batched:
        return drop(input, p, training)
    dropped = drop(input.unsqueeze(0), p, training)
    return input if inplace else dropped.squeeze(0)
