"""Batch normalisation layers."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from .._sizes import _spatial
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What batch and instance normalisation share: an affine map per channel, and running statistics.

    `weight` and `bias` (num_features) start as one and zero; they are None without `affine`, `bias` also without
    `bias`. The buffers `running_mean`, `running_var` and `num_batches_tracked` are None without `track_running_stats`.
    """

    # Since version 2 the state has num_batches_tracked.
    _version = 2
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    # The numbers of dimensions that an input may have; none for any.
    _dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory = {"device": device, "dtype": dtype}
        for name, present in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(rushlight.empty(num_features, **factory)) if present else None)
        if track_running_stats:
            self.register_buffer("running_mean", rushlight.zeros(num_features, **factory))
            self.register_buffer("running_var", rushlight.ones(num_features, **factory))
            self.register_buffer("num_batches_tracked", rushlight.tensor(0, dtype=rushlight.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to zero, the running variance to one, and the count of batches to zero."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the affine map to the identity, and the running statistics to their initial values."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _channel_dim(self, input: Tensor) -> int:
        return 1

    def _check_input_dim(self, input: Tensor) -> None:
        if self._dims and input.dim() not in self._dims:
            expected = " or ".join(f"{dims}D" for dims in self._dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        channels = self.num_features or "C"  # no number: to be taken from the input
        return tuple(("N", channels, *_spatial(dims - 2)) for dims in self._dims)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        key = prefix + "num_batches_tracked"
        if local_metadata.get("version", 1) < 2 and self.track_running_stats and key not in state_dict:
            tracked = self.num_batches_tracked
            state_dict[key] = rushlight.tensor(0, dtype=rushlight.int64) if tracked is None else tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Batch normalisation of inputs whose numbers of dimensions a subclass sets."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        training, mean, var, momentum = self.training, self.running_mean, self.running_var, self.momentum
        tracked = self.num_batches_tracked if training and self.track_running_stats else None
        if momentum is None:  # the average of all batches so far
            momentum = 0.0 if tracked is None else 1.0 / (float(tracked) + 1)
        if training:
            if not self.track_running_stats:
                mean = var = None
        elif mean is None and var is None:
            training = True
        result = F.batch_norm(input, mean, var, self.weight, self.bias, training, momentum, self.eps)
        if tracked is not None:  # a batch that does not fit is not counted
            tracked.add_(1)
        return result


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) · weight + bias for each channel of an input (N, C) or (N, C, L).

    In training mean and (biased) variance are those of the batch, and the running ones move towards the batch's mean
    and unbiased variance by the share `momentum` (None for the average of all batches); in evaluation they are the
    running ones, if tracked. From "Batch normalization", Ioffe and Szegedy 2015.
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) · weight + bias for each channel of an input (N, C, H, W); see `BatchNorm1d`."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) · weight + bias for each channel of an input (N, C, D, H, W); see `BatchNorm1d`."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of an input (N, C, ...) over the batches of all processes of `process_group`.

    In the one process that rushlight runs in, that is batch normalisation. A process group raises NotImplementedError.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if process_group is not None:
            raise NotImplementedError("SyncBatchNorm: rushlight has no process groups; pass process_group=None")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with every batch normalisation in it replaced by one of this class with the same state."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation whose `num_features` is the number of channels of the first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # The base class sets up what needs no size; the true parameters and buffers follow.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = rushlight.tensor(0, dtype=rushlight.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        self.num_features = input.shape[self._channel_dim(input)]
        if not self.has_uninitialized_params():
            return
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` whose `num_features` is the number of channels of the first input."""

    cls_to_become = BatchNorm1d
    _dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` whose `num_features` is the number of channels of the first input."""

    cls_to_become = BatchNorm2d
    _dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` whose `num_features` is the number of channels of the first input."""

    cls_to_become = BatchNorm3d
    _dims = (5,)
