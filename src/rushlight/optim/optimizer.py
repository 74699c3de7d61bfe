"""The base of every optimizer: parameter groups, per-parameter state, hooks and state dicts."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import rushlight
from rushlight import Tensor
from rushlight._C import _optim
from rushlight.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]
StepPreHook: TypeAlias = Callable[..., tuple[tuple[Any, ...], dict[str, Any]] | None]
StepPostHook: TypeAlias = Callable[..., None]
Step = TypeVar("Step", bound=Callable[..., Any])

_global_pre_hooks: OrderedDict[int, StepPreHook] = OrderedDict()
_global_post_hooks: OrderedDict[int, StepPostHook] = OrderedDict()

# What __init__ and unpickling both have to create: one table of hooks for each occasion.
_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _RequiredParameter:
    """Marks an option without a default: every parameter group has to give it."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(hooks: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: StepPreHook) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before every step of every optimizer; the handle returned removes it."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: StepPostHook) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after every step of every optimizer; the handle returned removes it."""
    return _register(_global_post_hooks, hook)


def _with_hooks(step: Step) -> Step:
    """Makes ``step`` run the hooks of steps around itself."""

    @functools.wraps(step)
    def hooked_step(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        if not (before or after or _global_pre_hooks or _global_post_hooks):
            return step(self, *args, **kwargs)
        full: tuple[Any, ...] = (self, *args)
        for pre_hook in [*_global_pre_hooks.values(), *before.values()]:
            result = pre_hook(self, full, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            full, kwargs = result
        value = step(*full, **kwargs)
        for post_hook in [*after.values(), *_global_post_hooks.values()]:
            post_hook(self, full, kwargs)
        return value

    hooked_step.hooked = True  # type: ignore[attr-defined]
    return hooked_step  # type: ignore[return-value]


class Optimizer:
    """Base class of optimizers.

    ``params`` is an iterable of tensors, of ``(name, tensor)`` pairs, or of dicts: parameter groups with the key
    ``"params"`` and options of their own. ``defaults`` holds the options of groups that do not give them.

    ``param_groups`` is the list of groups and ``state`` maps a parameter to its dict of state; both may be changed
    between steps.

    Raises:
        TypeError: ``params`` is a single tensor, or holds something else than tensors.
        ValueError: ``params`` is empty, holds a tensor that is no leaf, or a group repeats a parameter of another.
    """

    defaults: dict[str, Any]
    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: OrderedDict[int, StepPreHook]
    _optimizer_step_post_hooks: OrderedDict[int, StepPostHook]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., None]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., StateDict | None]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., StateDict | None]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., None]]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {rushlight.typename(params)}"
            )
        self.defaults = defaults
        self._prepare()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _prepare(self) -> None:
        """Creates what is not pickled: tables of hooks, and the class's step that runs them."""
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            if i:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # Hooks

    def register_step_pre_hook(self, hook: StepPreHook) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step.

        It may return ``(args, kwargs)`` to call the step with. The handle returned removes the hook.
        """
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: StepPostHook) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step; the handle returned removes it."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` before ``state_dict``; ``prepend`` puts it before the hooks that are there."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` after ``state_dict``; what it returns, if not None, is the result."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)``, with a shallow copy, before ``load_state_dict``.

        What it returns, if not None, is loaded in the place of the state dict given.
        """
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` after ``load_state_dict``; ``prepend`` puts it before the hooks that are there."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State dicts

    def state_dict(self) -> StateDict:
        """Returns ``{"state": ..., "param_groups": ...}``, in which parameters are replaced by their running number.

        The tensors of the state are the optimizer's own, not copies.
        """
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        start = 0
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result: StateDict = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            changed = post_hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Takes over the options and the state of ``state_dict``, matching parameters by their order.

        Tensors of the state are converted to the dtype of their parameter, the count ``"step"`` excepted; tensors
        which have that dtype already are shared with ``state_dict``. Names of parameters are not compared.

        Raises:
            ValueError: the number of groups, or of the parameters in one of them, differs.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = pre_hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(group["params"]) != len(other["params"]) for group, other in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = chain.from_iterable(group["params"] for group in groups)
        owners = dict(zip(numbers, params, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                state[owners[key]] = _converted(value, owners[key])
            else:
                state[key] = value
        for group, other in zip(groups, saved, strict=True):
            if "param_names" in group:
                other.setdefault("param_names", group["param_names"])
            other["params"] = group["params"]
        self.__setstate__({"state": state, "param_groups": saved})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    # Parameters

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters, or with ``set_to_none=False`` fills them with zeros."""
        if set_to_none:
            for group in self.param_groups:
                _optim.clear_grads(group["params"])
            return
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once; ``closure`` evaluates the model anew and returns the loss."""
        raise NotImplementedError(f"{type(self).__name__} does not define step")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters: a dict with the key ``"params"`` and options of the group's own.

        Raises:
            TypeError: it is no dict, its parameters have no order, or one of them is no tensor.
            ValueError: a parameter is no leaf or belongs to another group, a required option is missing, or some
                parameters have names and others have none.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _split_names(param_group["params"])
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {rushlight.typename(p)}"
                )
            # A differentiable step updates tensors that other computations produced.
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        distinct = set(params)
        if len(params) != len(distinct):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        if not distinct.isdisjoint(p for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        named = bool(names) or "param_names" in param_group
        if self.param_groups and named != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {'with' if named else 'without'} names to the optimizer"
            )
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)


def _split_names(params: Any) -> tuple[list[Any], list[str]]:
    """Lists the parameters of a group and, where they came as pairs, their names."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    entries = list(params)
    names = [entry[0] for entry in entries if isinstance(entry, tuple)]
    if names and len(names) != len(entries):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return ([entry[1] for entry in entries] if names else entries), names


def _converted(value: Any, param: Tensor, key: Any = None) -> Any:
    """The loaded state ``value``, with tensors in the dtype of ``param``.

    Counts stay as they are (they would not fit into a half type), and so does everything if the parameter is no
    floating point tensor.
    """
    if isinstance(value, Tensor):
        return value.to(param.dtype) if key != "step" and param.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _converted(v, param, k) for k, v in value.items()}
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return value
    return type(value)(_converted(v, param) for v in value)  # type: ignore[call-arg]
