"""Methods of Tensor that are written in Python."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, SupportsIndex

from . import _C

Tensor = _C.Tensor
_run_backward = _C._run_backward

__all__: list[str] = []


def _method(function: Any) -> Any:
    setattr(Tensor, function.__name__, function)
    return function


def _property(function: Any) -> Any:
    setattr(Tensor, function.__name__, property(function))
    return function


@_method
def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Add the gradient of this tensor, weighed by ``gradient``, to ``.grad`` of the leaves (or of ``inputs``).

    See :func:`rushlight.autograd.backward`.
    """
    if inputs is not None:
        from .autograd import backward as run

        run(self, gradient, retain_graph, create_graph, inputs=inputs)
        return
    _run_backward(
        (self,), (gradient,), create_graph if retain_graph is None else retain_graph, create_graph, (), True, True
    )


@_method
def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    from ._tensor_str import tensor_str

    return tensor_str(self, tensor_contents=tensor_contents)


@_method
def __format__(self: Tensor, spec: str) -> str:
    if self.dim() == 0:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


@_method
def __reversed__(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else self.flip(0)


@_method
def __contains__(self: Tensor, element: Any) -> bool:
    if isinstance(element, Tensor | int | float | complex):
        return bool((self == element).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


# their names in Python 2, which PyTorch keeps
for _name, _same in (("__div__", "__truediv__"), ("__rdiv__", "__rtruediv__"), ("__idiv__", "__itruediv__")):
    setattr(Tensor, _name, getattr(Tensor, _same))


@_method
def polygamma(self: Tensor, n: int) -> Tensor:
    """Return the derivative of order ``n`` of digamma. See :func:`rushlight.polygamma`."""
    return _C.polygamma(n, self)


@_method
def polygamma_(self: Tensor, n: int) -> Tensor:
    """Replace the elements by the derivative of order ``n`` of digamma."""
    return self.copy_(_C.polygamma(n, self))


def _function_as_method(name: str) -> None:
    """A method that is the function of that name, whose module is imported when it is first called."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        import rushlight

        return getattr(rushlight, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"See :func:`rushlight.{name}`."
    setattr(Tensor, name, method)


for _name in (
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "geqrf",
    "histogram",
    "igamma",
    "igammac",
    "inverse",
    "is_conj",
    "is_neg",
    "istft",
    "logdet",
    "lu",
    "lu_solve",
    "matrix_exp",
    "matrix_power",
    "orgqr",
    "ormqr",
    "pinverse",
    "qr",
    "resolve_conj",
    "resolve_neg",
    "slogdet",
    "stft",
    "svd",
    "triangular_solve",
):
    _function_as_method(_name)


@_method
def igamma_(self: Tensor, other: Tensor) -> Tensor:
    """Replace the elements by the regularized lower incomplete gamma function of them and ``other``."""
    return self.copy_(self.igamma(other))


@_method
def igammac_(self: Tensor, other: Tensor) -> Tensor:
    """Replace the elements by the regularized upper incomplete gamma function of them and ``other``."""
    return self.copy_(self.igammac(other))


def _warn_of_hooks(tensor: Tensor) -> None:
    if tensor._hooks():
        from .utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)


@_property
def _backward_hooks(self: Tensor) -> Any:
    """The dictionary of this tensor's hooks, or None."""
    return self._hooks()


@_method
def __deepcopy__(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage."
        )
    if id(self) in memo:
        known: Tensor = memo[id(self)]
        return known
    _warn_of_hooks(self)
    storages = memo.setdefault("rushlight storages", {})
    storage = self.untyped_storage()
    key = storage._identity()
    copied = storages.get(key)
    if copied is None:
        copied = storages[key] = _C.UntypedStorage(storage.nbytes())
        memoryview(copied)[:] = memoryview(storage)
    new = _C.empty((0,), dtype=self.dtype)
    new.set_(copied, self.storage_offset(), tuple(self.shape), self.stride())
    if type(self) is not Tensor:
        new = Tensor._make_subclass(type(self), new)
    if self.requires_grad:
        new.requires_grad_()
    memo[id(self)] = new
    if self.grad is not None:
        new.grad = copy.deepcopy(self.grad, memo)
    if self.__dict__:
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return new


def _rebuild(array: Any, dtype: Any, cls: type[Tensor], requires_grad: bool, state: dict[str, Any]) -> Tensor:
    made = _C.from_numpy(array)
    if made.dtype is not dtype:
        made = made.view(dtype)
    if cls is not Tensor:
        made = Tensor._make_subclass(cls, made)
    if requires_grad:
        made.requires_grad_()
    if state:
        made.__dict__.update(state)
    return made


@_method
def __reduce_ex__(self: Tensor, protocol: SupportsIndex) -> Any:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) can be pickled; call detach() first"
        )
    _warn_of_hooks(self)
    plain = self.detach()
    array = (plain.view(_C.int16) if self.dtype is _C.bfloat16 else plain).numpy().copy()
    return _rebuild, (array, self.dtype, type(self), self.requires_grad, self.__dict__)


@_method
def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return elements of this tensor where ``condition`` is True, of ``other`` (tensor or number) elsewhere."""
    return _C.where(condition, self, other)


@_method
def chalf(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Complex numbers of half precision: there are none (NotImplementedError)."""
    raise NotImplementedError("rushlight has no complex numbers of half precision (torch.complex32)")


@_property
def mH(self: Tensor) -> Tensor:
    """Matrices transposed and conjugated."""
    if self.dim() == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return self.adjoint()


@_property
def H(self: Tensor) -> Tensor:
    """A matrix transposed and conjugated."""
    n = self.dim()
    if n not in (0, 2):
        batches = "" if n < 2 else " For batches of matrices, consider using tensor.mH"
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {n}-D tensor.{batches}")
    return self.adjoint()


@_method
def as_subclass(self: Tensor, cls: Any) -> Any:
    """Return a view of the whole tensor that is an object of ``cls``, a subclass of Tensor; TypeError for others."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            f"class inherits from Tensor (got {cls.__name__})."
        )
    view: Any = _C.alias(self)
    view.__class__ = cls
    return view


setattr(Tensor, "__array_priority__", 1000)  # noqa: B010  (NumPy asks for it)
