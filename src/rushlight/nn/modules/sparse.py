"""Embeddings: learned vectors looked up by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What the embeddings share: ``weight (num_embeddings, embedding_dim)``, normal at first, zero at `padding_idx`."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _set_table(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        given: Tensor | None,
        freeze: bool,
        device: Any,
        dtype: rushlight.dtype | None,
    ) -> None:
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"Padding_idx must be within num_embeddings, got {padding_idx} for {num_embeddings}"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if given is None:
            empty = rushlight.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=not freeze)
            self.reset_parameters()
            return
        if tuple(given.shape) != (num_embeddings, embedding_dim):
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"expected {(num_embeddings, embedding_dim)}, got {tuple(given.shape)}"
            )
        self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draws the table from the standard normal distribution again; the row `padding_idx` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with rushlight.no_grad():
                self.weight[self.padding_idx].fill_(0)


def _table_shape(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} dimensions")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """A table of `num_embeddings` vectors of `embedding_dim` numbers: indices ``(*)`` to ``(*, embedding_dim)``.

    `padding_idx`: its row is zero at first and gets no gradient. `max_norm`: rows looked up are first scaled to at
    most this norm (of type `norm_type`). `scale_grad_by_freq`: gradients are divided by the rows' numbers of
    occurrences. `sparse` is refused, a ``NotImplementedError``.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__()
        _refuse_sparse(sparse, self)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._set_table(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text + _settings(self)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An embedding with the rows of `embeddings`, which do not learn unless `freeze` is false."""
        rows, columns = _table_shape(embeddings)
        return cls(
            rows,
            columns,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the vectors in each bag of indices, without keeping the vectors.

    Input ``(B, L)``, or one row with `offsets`, and `per_sample_weights`, as for
    :func:`rushlight.nn.functional.embedding_bag`: ``(B, embedding_dim)``. Settings as for :class:`Embedding`.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__()
        _refuse_sparse(sparse, self)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._set_table(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}{_settings(self)}, mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Bags over the rows of `embeddings`, which do not learn unless `freeze` is false."""
        rows, columns = _table_shape(embeddings)
        bags = cls(
            rows,
            columns,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bags.weight.requires_grad = not freeze
        return bags


def _refuse_sparse(sparse: bool, module: Module) -> None:
    if sparse:
        raise NotImplementedError(
            f"{type(module).__name__}: sparse=True is not available, gradients are dense tensors here"
        )


def _settings(table: Embedding | EmbeddingBag) -> str:
    """What is not the default, as in a module's printed form."""
    text = ""
    if table.max_norm is not None:
        text += f", max_norm={table.max_norm}"
    if table.norm_type != 2:
        text += f", norm_type={table.norm_type}"
    if table.scale_grad_by_freq is not False:
        text += f", scale_grad_by_freq={table.scale_grad_by_freq}"
    return text
