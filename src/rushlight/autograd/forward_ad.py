"""Forward mode (``torch.autograd.forward_ad``): dual tensors, which carry a tangent through every operation.

With ``x`` in a dual with tangent ``t``, ``f(x)`` carries the product of the Jacobian of ``f`` at ``x`` with ``t``::

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        value, tangent = forward_ad.unpack_dual(f(dual))

The tangents of a level go when it ends. One level may be open at a time here; ``func.jvp`` nests.
"""

from typing import Any, NamedTuple

from rushlight import _C

from .grad_mode import _DecoratorContextManager

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` returns."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Open the level and return its number, to be used with every function here.

    Raises RuntimeError if one is open.
    """
    global _current_level
    if _C._tangent_levels():
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level: int = _C._enter_tangent_level()
    _current_level = level
    return level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: all its tangents go. Raises RuntimeError unless it is the one opened last."""
    global _current_level
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _C._exit_tangent_level(level)
    _current_level = level - 1


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return an alias of ``tensor`` that carries ``tangent``, of the same shape.

    The tangent is used itself where it is laid out in memory like ``tensor``, else copied. Derivatives by reverse mode
    flow through to both. Raises ValueError unless both are floating point or complex, RuntimeError for another shape,
    for a tensor that has a tangent, and if no level is open.
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, given in (("primal", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {given.dtype}")
    if _C._highest_level((tensor, tangent)):
        from .._vmap.tangent import make_dual as make_batched

        return make_batched(tensor, tangent, level)
    return _C._make_dual(tensor, tangent, level)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return an alias of ``tensor`` without its tangent, and the tangent, None if it has none."""
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if _C._highest_level(tensor):
        from .._vmap.tangent import unpack_dual as unpack_batched

        return UnpackedDualTensor(*unpack_batched(tensor, level))
    return UnpackedDualTensor(*_C._unpack_dual(tensor, level))


class dual_level(_DecoratorContextManager):
    """A context in which the level is open::

    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, t))).tangent
    """

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Turn forward mode on or off, at once and until the end of the context."""

    def __init__(self, mode: bool) -> None:
        self.prev: bool = _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _C._set_fwd_grad_enabled(self.prev)


def _is_fwd_grad_enabled() -> bool:
    return bool(_C._is_fwd_grad_enabled())
