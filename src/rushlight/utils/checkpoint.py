"""Recomputing in backward what forward did not keep (``torch.utils.checkpoint``).

``checkpoint(function, *args)`` gives what ``function(*args)`` gives, but keeps none of the tensors that the operations
in it save for backward. The way without re-entering the engine is in `_checkpoint_frame`, selective checkpoints in
`_checkpoint_selective`; here are the entry points, and the re-entrant way.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._missing import lazy_module
from rushlight.autograd import Function, backward
from rushlight.autograd.grad_mode import enable_grad, no_grad

from ._checkpoint_frame import CheckpointError, Frame, GraphExecGroup
from ._checkpoint_selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

_early_stop_enabled = True
_debug_enabled: bool | None = None


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing: what ``checkpoint`` enters around forward and recomputation by default."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)``; what its operations save is not kept but computed anew in backward.

    The function must do the same when it runs again. The random numbers are the same unless
    ``preserve_rng_state=False`` is given. ``use_reentrant=False`` (recommended) works with ``autograd.grad``, keyword
    arguments, nested checkpoints and inputs that do not require grad. ``context_fn`` returns two contexts: around
    forward, around the recomputation. ``determinism_check="default"`` compares shape, dtype and device of what is saved
    in both runs, ``"none"`` does not. ``debug`` lists the operators of both runs with errors of the check.
    ``early_stop`` ends the recomputation when the last saved tensor is there. With ``use_reentrant=True`` the whole
    function runs again inside of a node of its own, and only ``backward()`` without ``inputs`` is possible.

    Raises ValueError for arguments that the re-entrant way does not take or an unknown check, CheckpointError (in
    backward) where the second run saved other tensors.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    wants_journal = debug if _debug_enabled is None else _debug_enabled
    if wants_journal and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    around_forward, around_recomputation = context_fn()
    if not _C.is_grad_enabled():
        with around_forward:
            return function(*args, **kwargs)
    frame = Frame(
        function,
        args,
        kwargs,
        preserve_rng_state=preserve_rng_state,
        contexts=around_recomputation,
        check_metadata=determinism_check == "default",
        early_stop=early_stop and _early_stop_enabled,
        journal=_journal() if wants_journal else None,
    )
    with around_forward:
        return frame.forward(args)


def _journal() -> Any:
    from ._checkpoint_journal import Journal

    return Journal()


def checkpoint_sequential(
    functions: Iterable[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Apply ``functions`` (a Sequential, or a list) one after the other, in ``segments`` parts of about equal length.

    All parts but the last are checkpointed. ``preserve_rng_state`` as for :func:`checkpoint`. Raises ValueError for
    other keyword arguments.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, "
            "but if you need to preserve the current default behavior, you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    chain = list(functions.children()) if isinstance(functions, rushlight.nn.Sequential) else list(functions)
    size = len(chain) // segments
    starts = list(range(0, size * (segments - 1), size))
    for start in starts:
        part = _composed(chain[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _composed(chain[starts[-1] + size if starts else 0 :])(input)


def _composed(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, checkpoints stop their recomputation early, or do not; their backward may be outside."""
    global _early_stop_enabled
    previous, _early_stop_enabled = _early_stop_enabled, enable
    try:
        yield
    finally:
        _early_stop_enabled = previous


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside, ``enabled`` stands in for the ``debug`` of every checkpoint; None leaves it to them."""
    global _debug_enabled
    previous, _debug_enabled = _debug_enabled, enabled
    try:
        yield
    finally:
        _debug_enabled = previous


# ---- the re-entrant way


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same, tensors cut off from the graph but requiring grad where they did. RuntimeError for what is no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where none of the inputs requires grad."""
    if not any(a.requires_grad for a in inputs if isinstance(a, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=1)


class CheckpointFunction(Function):
    """The node of a re-entrant checkpoint: its backward runs the function again, and backward over that."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:  # type: ignore[override]
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = _C.default_generator.get_state() if preserve_rng_state else None
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_at = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensor_at])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, tensor in zip(ctx.tensor_at, ctx.saved_tensors, strict=True):
            args[i] = tensor
        inputs = detach_variable(tuple(args))
        now = _C.default_generator.get_state()
        if ctx.rng_state is not None:
            _C.default_generator.set_state(ctx.rng_state)
        try:
            with enable_grad():
                outputs = ctx.run_function(*inputs)
        finally:
            if ctx.rng_state is not None:
                _C.default_generator.set_state(now)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        wanted = [
            (out, g) for out, g in zip(outputs, grads, strict=True) if isinstance(out, Tensor) and out.requires_grad
        ]
        if not wanted:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in wanted], [g for _, g in wanted])
        return (None, None, *[a.grad if isinstance(a, Tensor) else None for a in inputs])


# ---- devices: there is one, whose state is the default generator's


class DefaultDeviceType:
    """The type of device whose random numbers a checkpoint preserves beside the CPU's; kept for programs that set it."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._default_device_type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The numbers of the devices other than the CPU that ``args`` are on, and their generators' states: none."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Give generators of other devices their states back. RuntimeError for any device: there is none."""
    if len(devices) or len(states):
        raise RuntimeError(f"set_device_states: there are no devices beside the CPU, but got states of {list(devices)}")


__getattr__, __dir__ = lazy_module(__name__)
