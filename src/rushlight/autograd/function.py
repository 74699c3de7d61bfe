"""Operations with a derivative written in Python (``torch.autograd.function``).

What the core provides
----------------------
``_C._FunctionBase`` is a graph node whose derivative is a Python method. A class of its own is derived from it for
every Function (``MultiplyAddBackward`` for ``MultiplyAdd``); one instance serves as ``ctx`` of a forward and is the
``grad_fn`` of its outputs. On it the core defines

* the methods ``save_for_backward``, ``save_for_forward``, ``mark_dirty``, ``mark_non_differentiable``,
  ``set_materialize_grads`` and the attributes ``saved_tensors``, ``saved_for_forward`` and ``needs_input_grad``;
* ``name()``, the name of the class, and what every node has (``next_functions``, hooks, ``metadata``);
* ``__dict__`` and visibility to the garbage collector: a context may hold anything, its own output included.

``_C._function_apply(cls, args)`` runs the Function ``cls`` on the positional arguments ``args``:

1. ``ctx = cls._backward_cls()``; ``ctx.needs_input_grad`` gets one bool per argument: whether it is a tensor that
   requires grad. Tensors inside containers are not looked for.
2. With recording off, ``forward(ctx, *args)``, or, if ``cls.setup_context`` is not ``Function.setup_context``,
   ``forward(*args)`` and then ``setup_context(ctx, args, output)``.
3. Of the output, a tensor or a tuple, what is not a tensor is passed through, as is anything else in its place. If no
   argument requires grad this is all, except that tensors marked dirty keep their identity.
4. Dirty inputs are checked first: each must be among the outputs, must not be a leaf that requires grad, and as a view
   allows no second output. Their history is rebased on ``ctx``. An input returned as it is becomes a view of itself,
   and like a view made inside forward refuses to be changed in place. Outputs marked non-differentiable or of an
   integer type do not require grad. All others get ``ctx`` as ``grad_fn``.
5. The tensors of ``save_for_backward`` (None allowed) become saved tensors only now, when an output among them can be
   saved without a cycle.

In backward the engine calls ``ctx.apply(*gradients)``, :meth:`BackwardCFunction.apply` below, with recording on only
under ``create_graph``. Undefined gradients are zeros before (unless ``set_materialize_grads(False)``), and of what
returns the core checks number, type and shape, sums what was broadcast and casts to the input's dtype.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

import rushlight
from rushlight import _C, Tensor
from rushlight._missing import lazy_module

from .grad_mode import enable_grad, no_grad

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

T = TypeVar("T")


class FunctionCtx(_C._FunctionBase):  # type: ignore[misc]
    """The first argument of ``forward`` and ``backward``: what they share, and what forward says of its results.

    ``save_for_backward(*tensors)`` keeps inputs, outputs or intermediate tensors for backward, where they are
    ``saved_tensors``; inputs and outputs kept so are checked for later changes. ``save_for_forward(*tensors)`` keeps
    tensors for ``jvp``. ``mark_dirty(*tensors)`` names inputs changed in place, ``mark_non_differentiable(*tensors)``
    outputs without a gradient. ``set_materialize_grads(False)`` lets backward see None, not zeros, for outputs that
    were not used. ``needs_input_grad[i]`` tells whether the gradient of argument ``i`` is wanted. Anything that is not
    a tensor may be kept as an attribute.
    """


class BackwardCFunction(FunctionCtx):
    """The node of a Function in the graph; a class of its own is derived from it for every Function."""

    _forward_cls: ClassVar[type["Function"]]

    def apply(self, *args: Any) -> Any:
        """Call ``backward`` (or ``vjp``, its other name) with gradients of the outputs, as the engine does."""
        cls = self._forward_cls
        backward = cls.backward
        if cls.vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                    "implement one of them."
                )
            backward = cls.vjp
        return backward(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Call ``jvp`` with tangents of the arguments."""
        return self._forward_cls.jvp(self, *args)


class FunctionMeta(type):
    """Gives each Function the class of its nodes.

    The class is made when it is first asked for: most Functions that a program imports are never applied.
    """

    @property
    def _backward_cls(cls) -> type[BackwardCFunction]:
        made: type[BackwardCFunction] | None = cls.__dict__.get("_node_cls")
        if made is None:
            made = type(cls.__name__ + cls._node_suffix, (BackwardCFunction,), {"_forward_cls": cls})  # type: ignore[attr-defined]
            cls._node_cls = made
        return made


class Function(metaclass=FunctionMeta):
    """Base of operations whose derivative is written in Python.

    A subclass defines the static methods ``forward(ctx, *args)`` and ``backward(ctx, *gradients)``; or
    ``forward(*args)`` and ``setup_context(ctx, inputs, output)``, which ``func`` transforms require. ``backward`` takes
    one gradient per output and returns one per argument, None where there is none; made of differentiable operations,
    it can be differentiated again. ``jvp(ctx, *tangents)`` is the forward-mode counterpart, ``vmap(info, in_dims,
    *args)`` the batching rule unless ``generate_vmap_rule`` is true. Call it by ``apply``::

        class MultiplyAdd(Function):
            @staticmethod
            def forward(ctx, w, x, b):
                ctx.save_for_backward(w, x)
                return w * x + b

            @staticmethod
            def backward(ctx, gradient):
                w, x = ctx.saved_tensors
                return gradient * x, gradient * w, gradient


        y = MultiplyAdd.apply(w, x, b)
    """

    generate_vmap_rule: ClassVar[bool] = False
    _node_suffix: ClassVar[str] = "Backward"  # what the name of its nodes ends with
    _transposes_backward: ClassVar[bool] = False  # the core's: is forward mode to follow from backward?

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you "
            "should invoke them on the class itself. Instantiating an autograd function will raise an error in a "
            "future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method: make forward and backward static and call {type(self).__name__}"
            ".apply(...)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` on the arguments and record it if one of them is a tensor that requires grad.

        Returns what ``forward`` returned. Raises TypeError for arguments that ``forward`` does not take, RuntimeError
        for a wrong use of ``mark_dirty``.
        """
        if kwargs or cls.setup_context is not Function.setup_context:
            args = _bind(cls, args, kwargs)
        return _C._function_apply(cls, args)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or ``forward(*args)`` with ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep in ``ctx`` what backward needs, given the arguments and the outputs of ``forward``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments for given gradients of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the outputs for given tangents of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Return the outputs for batched arguments, and the dimensions along which the outputs are batched."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )


class InplaceFunction(Function):
    """A Function with an attribute ``inplace``, kept for old programs; ``ctx.mark_dirty`` needs no such class."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def once_differentiable(fn: Callable[..., T]) -> Callable[..., T]:
    """Decorate a ``backward`` that cannot be differentiated.

    It runs with recording off. If a gradient that it is given requires grad, differentiating what it returns raises
    RuntimeError rather than giving a wrong second derivative.
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs: Any = fn(ctx, *args)
        if not rushlight.is_grad_enabled():
            return outputs
        sources = [arg for arg in args if isinstance(arg, Tensor) and arg.requires_grad]
        if not sources:
            return outputs
        if not isinstance(outputs, tuple):
            return _refuse_differentiation(outputs, sources)
        return tuple([_refuse_differentiation(out, sources) for out in outputs])

    return wrapper


def _refuse_differentiation(out: Any, sources: list[Tensor]) -> Any:
    return out if out is None else Error.apply(out, *sources)


class Error(Function):
    """The identity whose derivative raises: what once_differentiable puts between its results and its arguments."""

    @staticmethod
    def forward(ctx: Any, out: Any, *sources: Any) -> Any:
        return out.detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> NoReturn:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _with_histories(
    ctx: Any, saved: tuple[Tensor | None, ...], args: tuple[Any, ...], versions: tuple[int, ...]
) -> tuple[Tensor | None, ...]:
    """What ``saved_tensors`` gives in a backward that is recorded, where forward saved an intermediate.

    Forward ran without recording, so an intermediate has no history, and a second derivative would take it for a
    constant: silently wrong. Forward runs again, recorded, and the intermediates that depend on inputs are those of
    the second run; they must be equal.
    """
    cls: type[Function] = ctx._forward_cls
    name = cls.__name__
    for i, (arg, version) in enumerate(zip(args, versions, strict=True)):
        if isinstance(arg, Tensor) and arg._version != version:
            raise RuntimeError(
                f"the second derivative of {name} needs its argument {i}, because forward saved an intermediate result "
                f"for backward, but the argument has been modified by an inplace operation: it is at version "
                f"{arg._version}; expected version {version} instead."
            )
    again: Any = cls._backward_cls()
    again.needs_input_grad = ctx.needs_input_grad
    state = _C.default_generator.get_state()
    try:
        with enable_grad():
            if cls.setup_context is Function.setup_context:
                cls.forward(again, *args)
            else:
                cls.setup_context(again, args, cls.forward(*args))
    finally:
        _C.default_generator.set_state(state)
    repeated: tuple[Tensor | None, ...] = again.saved_tensors
    if len(repeated) != len(saved):
        raise RuntimeError(f"forward of {name} saved {len(saved)} tensors, and {len(repeated)} when it ran again")
    return tuple([_repeated(name, i, old, new) for i, (old, new) in enumerate(zip(saved, repeated, strict=True))])


def _repeated(name: str, place: int, old: Tensor | None, new: Tensor | None) -> Tensor | None:
    """The saved tensor, or its second self where that has the history which the first lacks."""
    if old is None or new is None or old.requires_grad or not new.requires_grad:
        return old
    with no_grad():
        if old.shape != new.shape or not bool(((old == new) | (old != old) & (new != new)).all()):
            raise RuntimeError(
                f"a derivative of {name}'s backward was asked for; it depends on saved tensor {place}, an intermediate "
                "result of forward, and forward did not compute the same when it ran again. Return the intermediate as "
                "an output of forward and save that, or compute it in backward."
            )
    return new


def _bind(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of ``apply`` by position; with ``setup_context``, which sees them all, defaults included."""
    complete = cls.setup_context is not Function.setup_context
    parameters = _positional_parameters(cls)
    if len(args) >= len(parameters) and not kwargs:
        return args
    places = {parameter.name: place for place, parameter in enumerate(parameters)}
    for name in kwargs:
        if places.get(name, len(args)) < len(args):
            raise TypeError(f"forward() got multiple values for argument {name!r}")
        if name not in places:
            raise TypeError(f"forward() got an unexpected keyword argument {name!r}")
    last = len(parameters) if complete else 1 + max(places[name] for name in kwargs)
    bound = list(args)
    for parameter in parameters[len(args) : last]:
        value = kwargs.get(parameter.name, parameter.default)
        if value is inspect.Parameter.empty:
            raise TypeError(f"forward() missing a required argument: {parameter.name!r}")
        bound.append(value)
    return tuple(bound)


def _positional_parameters(cls: type[Function]) -> list[inspect.Parameter]:
    """The parameters of ``forward`` that ``apply`` may fill, read once for each Function."""
    forward: Any = cls.forward
    known = cls.__dict__.get("_forward_parameters")
    if known is None or known[0] is not forward:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [p for p in inspect.signature(forward).parameters.values() if p.kind in positional]
        takes_ctx = cls.setup_context is Function.setup_context
        known = (forward, parameters[1:] if takes_ctx else parameters)
        cls._forward_parameters = known  # type: ignore[attr-defined]
    return known[1]


# PyTorch's NestedIOFunction, for structures of tensors, is not here: pass the tensors one by one.
__getattr__, __dir__ = lazy_module(__name__)
