"""Handles that remove hooks, and the hooks around a module's backward pass."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight.autograd.function import Function  # not through the package, which imports this module

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_handle_ids = itertools.count()


class RemovableHandle:
    """Removes the hook it was returned for, by `remove()` or at the end of a `with` block.

    `hooks_dict` maps `id` to the hook; dictionaries given as `extra_dict` (one, or a list) lose their entry for `id`
    with it. The dictionaries are referred to weakly: a handle keeps no module alive.
    """

    id: int

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Callable[[], Any] = weakref.ref(hooks_dict)
        self.id = next(_handle_ids)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref: tuple[Callable[[], Any], ...] = tuple(weakref.ref(d) for d in extra)

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, int, tuple[Any, ...]]:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        def refer(hooks: Any) -> Callable[[], Any]:
            return weakref.ref(hooks) if hooks is not None else lambda: None

        global _handle_ids
        self.hooks_dict_ref = refer(state[0])
        self.id = state[1]
        self.extra_dict_ref = tuple(refer(d) for d in (state[2] if len(state) > 2 else ()) or ())
        # New handles must not take the number of one that was loaded.
        _handle_ids = itertools.count(max(next(_handle_ids), self.id + 1))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.remove()


def unserializable_hook(f: Any) -> Any:
    """Mark `f` as a hook that tensors silently lose when they are saved; usable as a decorator."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: rushlight.Tensor) -> None:
    """Warn about each backward hook of `tensor` that saving the tensor would lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class BackwardHookFunction(Function):
    """The identity on several tensors as one node, so that one hook sees all their gradients together."""

    @staticmethod
    def forward(ctx: Any, *args: rushlight.Tensor) -> tuple[rushlight.Tensor, ...]:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> tuple[Any, ...]:
        return args


class BackwardHook:
    """Puts a module's backward hooks around one call of it.

    An identity node before the module reports the gradients of its inputs to `user_hooks`, one behind it the
    gradients of its outputs to `user_pre_hooks`. Arguments that are not tensors appear as None.
    """

    def __init__(
        self, module: Any, user_hooks: Sequence[Callable[..., Any]], user_pre_hooks: Sequence[Callable[..., Any]]
    ) -> None:
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.module = module
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The module's arguments, with the node before the module behind those that are tensors."""
        self.n_inputs = len(args)
        args, self.input_tensors_index = _through_identity(args, self._on_input_gradients)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """The module's result, with the node behind the module on its tensors."""
        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        results, self.output_tensors_index = _through_identity(results, self._on_output_gradients)
        return results if isinstance(result, tuple) else results[0]

    def _on_input_gradients(self, grad_input: tuple[Any, ...], _: Any) -> tuple[Any, ...]:
        if self.grad_outputs is None:
            raise RuntimeError(
                "Module backward hook for grad_input is called before the grad_output one. This happens because the "
                "gradient in your nn.Module flows to the Module's input without passing through the Module's output. "
                "Make sure that the output depends on the input and that the loss is computed based on the output."
            )
        assert self.input_tensors_index is not None
        gradients = _spread(self.input_tensors_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            replaced = hook(self.module, gradients, self.grad_outputs)
            if replaced is None:
                continue
            replaced = (replaced,) if isinstance(replaced, rushlight.Tensor) else tuple(replaced)
            if len(replaced) != len(gradients):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(replaced)}, but expected "
                    f"{len(gradients)}"
                )
            gradients = replaced
        self.grad_outputs = None
        return tuple(gradients[i] for i in self.input_tensors_index)

    def _on_output_gradients(self, _: Any, grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
        assert self.output_tensors_index is not None
        gradients = _spread(self.output_tensors_index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, gradients)
            if replaced is None:
                continue
            replaced = (replaced,) if isinstance(replaced, rushlight.Tensor) else tuple(replaced)
            if len(replaced) != len(gradients):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(replaced)}, but expected "
                    f"{len(gradients)}"
                )
            gradients = replaced
        self.grad_outputs = gradients
        if self.input_tensors_index is None:
            self._fire_without_inputs(gradients)
        return tuple(gradients[i] for i in self.output_tensors_index)

    def _fire_without_inputs(self, gradients: tuple[Any, ...]) -> None:
        """Call the hooks from behind the module, as no gradient will reach the place before it."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See the documentation of `Module.register_full_backward_hook`.",
            stacklevel=2,
        )
        for hook in self.user_hooks:
            replaced = hook(self.module, (None,) * self.n_inputs, gradients)
            if replaced is not None and not (isinstance(replaced, tuple) and all(r is None for r in replaced)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None


def _spread(places: Sequence[int], values: Sequence[Any], length: int) -> tuple[Any, ...]:
    """A tuple of `length` with `values` at `places` and None elsewhere."""
    spread = [None] * length
    for place, value in zip(places, values, strict=True):
        spread[place] = value
    return tuple(spread)


def _through_identity(args: tuple[Any, ...], hook: Callable[..., Any]) -> tuple[tuple[Any, ...], list[int] | None]:
    """`args` with its tensors passed through one identity node that has `hook`, and the places of the tensors.

    Without a tensor that requires grad nothing is recorded, and the places are None.
    """
    places = [i for i, arg in enumerate(args) if isinstance(arg, rushlight.Tensor)]
    if not rushlight.is_grad_enabled() or not any(args[i].requires_grad for i in places):
        return args, None
    passed = BackwardHookFunction.apply(*(args[i] for i in places))
    node = next(t.grad_fn for t in passed if t.requires_grad)
    node.register_hook(hook)
    changed = list(args)
    for place, tensor in zip(places, passed, strict=True):
        changed[place] = tensor
    return (tuple(changed) if type(args) is tuple else type(args)(*changed)), places
