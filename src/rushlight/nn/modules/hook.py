"""Hooks around the forward and backward pass of modules, of one module or of all."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.utils.hooks import BackwardHook, RemovableHandle

from .registration import Registration

_Hook = Callable[..., Any]

_global_backward_pre_hooks: OrderedDict[int, _Hook] = OrderedDict()
_global_backward_hooks: OrderedDict[int, _Hook] = OrderedDict()
_global_is_full_backward_hook: bool | None = None
_global_forward_pre_hooks: OrderedDict[int, _Hook] = OrderedDict()
_global_forward_hooks: OrderedDict[int, _Hook] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()

# The call of a module looks whether these are empty.
rushlight._C._set_global_module_hooks(
    (_global_backward_pre_hooks, _global_backward_hooks, _global_forward_hooks, _global_forward_pre_hooks)
)


def _add(
    hooks: OrderedDict[int, _Hook], hook: _Hook, *marks: tuple[OrderedDict[int, bool], bool], prepend: bool = False
) -> RemovableHandle:
    """Add `hook` at the end of `hooks` (or the front), and its id to each dictionary of `marks` that is wanted."""
    handle = RemovableHandle(hooks, extra_dict=[marked for marked, _ in marks])
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for marked, wanted in marks:
        if wanted:
            marked[handle.id] = True
    return handle


def register_module_forward_pre_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; a result that is not None replaces `args`."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: _Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; a result replaces `output`.

    With `with_kwargs` the hook is called as `hook(module, args, kwargs, output)`, with `always_call` also when the
    forward raised.
    """
    return _add(
        _global_forward_hooks,
        hook,
        (_global_forward_hooks_with_kwargs, with_kwargs),
        (_global_forward_hooks_always_called, always_call),
    )


def register_module_backward_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` on the backward of the last node of every module (deprecated).

    Raises RuntimeError when full backward hooks of all modules exist.
    """
    _choose_global_kind(full=False)
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module; a result replaces `grad_output`."""
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module; a result replaces `grad_input`.

    Raises RuntimeError when non-full backward hooks of all modules exist.
    """
    _choose_global_kind(full=True)
    return _add(_global_backward_hooks, hook)


def _choose_global_kind(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    _global_is_full_backward_hook = full


class _WrappedHook:
    """A hook that is called with a module before its other arguments, without keeping the module alive."""

    def __init__(self, hook: _Hook, module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module: Callable[[], Any] = weakref.ref(module) if module is not None else lambda: None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "with_module": self.with_module, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy belongs to the copied module, so the state holds the module itself.
        module = state["module"]
        if state["with_module"] and module is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.hook, self.with_module = state["hook"], state["with_module"]
        self.module = weakref.ref(module) if module is not None else lambda: None


class Hooked(Registration):
    """The part of `Module` that keeps hooks and runs a call with them."""

    _backward_pre_hooks: OrderedDict[int, _Hook]
    _backward_hooks: OrderedDict[int, _Hook]
    # True for full backward hooks, False for the deprecated kind, None before the first.
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, _Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, _Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: _Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; a result that is not None replaces `args`.

        With `with_kwargs` the hook is called as `hook(module, args, kwargs)` and may return both. `prepend` puts it
        before the hooks that are there already.
        """
        mark = (self._forward_pre_hooks_with_kwargs, with_kwargs)
        return _add(self._forward_pre_hooks, hook, mark, prepend=prepend)

    def register_forward_hook(
        self, hook: _Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; a result that is not None replaces `output`.

        With `with_kwargs` the hook is called as `hook(module, args, kwargs, output)`, with `always_call` also when
        `forward` raised. `prepend` puts it before the hooks that are there already.
        """
        return _add(
            self._forward_hooks,
            hook,
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
            prepend=prepend,
        )

    def register_full_backward_pre_hook(self, hook: _Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when gradients reach the module's output; a result replaces them."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: _Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known.

        A result that is not None replaces `grad_input`. Keyword arguments have no gradient here. Raises RuntimeError
        when the module has backward hooks of the deprecated kind.
        """
        self._choose_kind(full=True)
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: _Hook) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` on the backward of the module's last node (deprecated).

        Raises RuntimeError when the module has full backward hooks.
        """
        self._choose_kind(full=False)
        return _add(self._backward_hooks, hook)

    def _choose_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    # The call -------------------------------------------------------------------------------------------------------

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` with all hooks around it."""
        called: set[int] = set()
        try:
            return self._forward_between_hooks(args, kwargs, called)
        except Exception:
            if _global_forward_hooks_always_called or self._forward_hooks_always_called:
                self._run_missed_hooks(args, kwargs, called)
            raise

    def _forward_between_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        full, partial = self._get_backward_hooks()
        pre_hooks = self._get_backward_pre_hooks()
        args, kwargs = self._run_pre_hooks(args, kwargs)
        around = BackwardHook(self, full, pre_hooks) if full or pre_hooks else None
        if around is not None:
            args = around.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for hook, key, with_kwargs in self._forward_hook_calls():
            called.add(key)
            replaced = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if replaced is not None:
                result = replaced
        if around is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=4,
                )
            result = around.setup_output_hook(result)
        if partial:
            self._hook_last_node(partial, args, result)
        return result

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for key, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is None:
                    continue
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                    )
                args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _forward_hook_calls(self) -> list[tuple[_Hook, int, bool]]:
        """Forward hooks in the order of their calls, each with its key and whether it takes keyword arguments."""
        own = [(hook, key, key in self._forward_hooks_with_kwargs) for key, hook in self._forward_hooks.items()]
        for_all = [(hook, key, key in _global_forward_hooks_with_kwargs) for key, hook in _global_forward_hooks.items()]
        return for_all + own

    def _run_missed_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> None:
        """After an error, call the hooks that are always called and were not; their own errors become warnings."""
        result = None
        for hook, key, with_kwargs in self._forward_hook_calls():
            of_all = key in _global_forward_hooks_always_called
            if key in called or not (of_all or key in self._forward_hooks_always_called):
                continue
            try:
                replaced = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                if replaced is not None:
                    result = replaced
            except Exception as error:
                warnings.warn(
                    f"{'global ' if of_all else ''}module forward hook with ``always_call=True`` raised an exception "
                    f"that was silenced as another error was raised in forward: {error}",
                    stacklevel=3,
                )

    # Backward hooks -------------------------------------------------------------------------------------------------

    def _get_backward_hooks(self) -> tuple[list[_Hook], list[_Hook]]:
        """The full backward hooks, and those of the deprecated kind."""
        full: list[_Hook] = []
        partial: list[_Hook] = []
        (full if _global_is_full_backward_hook else partial).extend(_global_backward_hooks.values())
        (full if self._is_full_backward_hook else partial).extend(self._backward_hooks.values())
        return full, partial

    def _get_backward_pre_hooks(self) -> list[_Hook]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _hook_last_node(self, hooks: list[_Hook], args: tuple[Any, ...], result: Any) -> None:
        """Register deprecated backward `hooks` on the node that made the first tensor of `result`."""
        tensor = result
        while not isinstance(tensor, Tensor):
            if isinstance(tensor, dict):
                tensor = next(value for value in tensor.values() if isinstance(value, Tensor))
            else:
                tensor = tensor[0]
        node = tensor.grad_fn
        if node is not None:
            for hook in hooks:
                node.register_hook(_WrappedHook(hook, self))
            self._maybe_warn_non_full_backward_hook(args, result, node)

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        """Warn where a deprecated backward hook sees less than all gradients of the module."""
        results = result if isinstance(result, tuple) else (result,)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        makers = {r.grad_fn for r in results if isinstance(r, Tensor) and r.grad_fn is not None}
        missing = "grad_output"
        if not all(isinstance(r, Tensor) for r in results):
            cause = "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors"
        elif not all(isinstance(i, Tensor) for i in inputs):
            cause = (
                "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors"
            )
            missing = "grad_input"
        elif len(makers) > 1:
            cause = "a non-full backward hook when outputs are generated by different autograd Nodes"
        elif grad_fn not in makers:
            cause = "a non-full backward hook when outputs are nested in python data structure"
        elif {i.grad_fn for i in inputs if i.grad_fn is not None} != {node for node, _ in grad_fn.next_functions}:
            cause = "a non-full backward hook when the forward contains multiple autograd Nodes"
            missing = "grad_input"
        else:
            return
        warnings.warn(
            f"Using {cause} is deprecated and will be removed in future versions. This hook will be missing some "
            f"{'of the ' if cause.startswith('non-full') else ''}{missing}. Please use register_full_backward_hook to "
            "get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )
