"""Methods and attributes of batched tensors that are no operators: geometry passes through, numbers are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight import _C, Tensor

from .table import BatchingError

__all__: list[str] = []

Batched: Any = _C._BatchedTensor


def _refusing(name: str, what: str) -> Callable[..., NoReturn]:
    def refuse(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise BatchingError(what)

    refuse.__name__ = name
    return refuse


_NUMBER = (
    "vmap: It looks like you're calling .{0} on a Tensor, but under vmap a tensor stands for all samples and has no "
    "single value: vmap does not support {0}. Compute with tensors instead, or call it outside of vmap."
)
_TRUTH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow (if, while, and, or, "
    "not), but under vmap a tensor stands for all samples, which may differ. Use where(condition, a, b), or call the "
    "function on each sample."
)
_GRAD = (
    "You are attempting to call Tensor.requires_grad_() (or to set requires_grad) inside of a function being "
    "transformed by a functorch transform. This is not supported: use the transforms (grad, vjp, jacrev, jacfwd, "
    "hessian) inside, or call requires_grad_() outside of the function."
)
_BACKWARD = (
    "backward() called inside a functorch transform. This is not supported: use func.grad or func.vjp inside, or call "
    "backward() outside of the transforms."
)

for _name in ("item", "tolist", "numpy", "data_ptr", "__array__", "__dlpack__", "untyped_storage", "storage"):
    setattr(Batched, _name, _refusing(_name, _NUMBER.format(_name + "()")))
for _name in ("__int__", "__float__", "__complex__", "__index__"):
    setattr(Batched, _name, _refusing(_name, _NUMBER.format("item()") + f" ({_name})"))
Batched.__bool__ = _refusing("__bool__", _TRUTH)
Batched.requires_grad_ = _refusing("requires_grad_", _GRAD)
Batched.backward = _refusing("backward", _BACKWARD)


def _attribute(name: str, get: Callable[[Any], Any], doc: str) -> None:
    setattr(Batched, name, property(get, doc=doc))


def _bottom(x: Any) -> Tensor:
    return _C._unbatch(x)[0]


def _around(x: Any, function: Callable[[Tensor], Any]) -> Any:
    value, levels = _C._unbatch(x)
    return _C._rebatch(function(value), levels)


def _set_requires_grad(self: Any, value: bool) -> NoReturn:
    raise BatchingError(_GRAD)


Batched.requires_grad = property(
    lambda self: _bottom(self).requires_grad, _set_requires_grad, doc="Are operations on the samples recorded?"
)
_attribute("grad_fn", lambda self: _bottom(self).grad_fn, "The producer of the samples.")
_attribute("is_leaf", lambda self: _bottom(self).is_leaf, "True where no recorded operation produced the samples.")
_attribute("data", lambda self: _around(self, lambda v: v.data), "The same samples, outside of the graph.")
_attribute("grad", lambda self: None, "Gradients are returned by the transforms, not accumulated.")
_attribute("T", lambda self: self.permute(tuple(range(self.dim()))[::-1]), "The dimensions reversed.")
_attribute("mT", lambda self: _matrix_transposed(self), "The last two dimensions exchanged.")
Batched.real = property(
    lambda self: _C.real(self), lambda self, value: _set_part(_C.real(self), value), doc="The real part, a view."
)
Batched.imag = property(
    lambda self: _C.imag(self), lambda self, value: _set_part(_C.imag(self), value), doc="The imaginary part, a view."
)
_attribute("_version", lambda self: _bottom(self)._version, "How often the memory was changed in place.")


def _set_part(part: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        part.copy_(value)
    else:
        part.fill_(value)


def _matrix_transposed(x: Tensor) -> Tensor:
    if x.dim() == 0:
        return x
    if x.dim() < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x.dim()}-D tensor.")
    return x.transpose(-2, -1)


def _repr(self: Any, *, tensor_contents: str | None = None) -> str:
    inner = repr(self._value).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={self._level}, bdim=0, value=\n    {inner}\n)"


Batched.__repr__ = _repr
Batched.__format__ = lambda self, spec: object.__format__(self, spec)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    return self.clone()


Batched.__deepcopy__ = _deepcopy


def _contains(self: Any, element: Any) -> NoReturn:
    raise BatchingError(_TRUTH)


Batched.__contains__ = _contains


def _register_hook(self: Any, hook: Callable[[Tensor], Tensor | None]) -> Any:
    """Hooks see the gradients of all samples, batched as the tensor is."""
    value, levels = _C._unbatch(self)

    def wrapped(gradient: Tensor) -> Tensor | None:
        result = hook(_C._rebatch(gradient, levels))
        return None if result is None else _C._unbatch(result)[0]

    return value.register_hook(wrapped)


Batched.register_hook = _register_hook


def _detach_(self: Any) -> Any:
    _bottom(self).detach_()
    return self


Batched.detach_ = _detach_
