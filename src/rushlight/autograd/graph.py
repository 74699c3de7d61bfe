"""The recorded graph: its nodes, what they save, and hooks on both (``torch.autograd.graph``).

The core provides the nodes (classes derived from ``_C._Node``), ``_C._current_graph_task_id()`` (-1 outside backward),
``_C._will_engine_execute_node(node)``, ``_C._increment_version(tensors)`` and, per thread,
``_C._push_saved_tensors_default_hooks(pack, unpack)``, ``_C._pop_saved_tensors_default_hooks()``,
``_C._saved_tensors_hooks_disable(message)``, ``_C._saved_tensors_hooks_enable()``,
``_C._saved_tensors_hooks_get_disabled_error_message()``.
What hooks pack is not checked for later changes: they are answerable for it.

Of PyTorch's module, what concerns CUDA streams and ``torch.compile`` is not here.
"""

import abc
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from rushlight import _C, Tensor
from rushlight._missing import lazy_module
from rushlight.utils.hooks import RemovableHandle

from ._mutation import check_version, unwatch, watch
from .grad_mode import enable_grad, no_grad

if TYPE_CHECKING:
    import os

    from ._memory_budget import MemoryBudget
    from .draw import draw

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",
    "get_gradient_edge",
    "increment_version",
    "memory_budget",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node(abc.ABC):
    """A recorded operation: what ``Tensor.grad_fn`` is an instance of.

    ``name()`` is its name, ``next_functions`` the pairs (node, output number) that its gradients go to, with None for
    inputs that need none, ``metadata`` a dict for the user. ``register_hook(fn)`` calls ``fn(grad_inputs,
    grad_outputs)`` after each run, ``register_prehook(fn)`` calls ``fn(grad_outputs)`` before; a tuple that either
    returns replaces ``grad_inputs`` or ``grad_outputs``. Both return a handle with ``remove()``.
    """

    @abc.abstractmethod
    def name(self) -> str:
        """Return the name, such as ``"MulBackward0"``."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> "tuple[tuple[Node | None, int], ...]":
        """The edges to the nodes of the inputs."""

    @abc.abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Anything the user wants to keep with the node."""

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> Sequence[Any]: ...

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Tensor) -> None: ...

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after each run of the node."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before each run of the node."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        if cls is Node and issubclass(subclass, _C._Node):
            return True
        return NotImplemented  # for classes that derive from Node itself


class GradientEdge(NamedTuple):
    """A place in the graph through which a gradient passes: an output of a node.

    Accepted as output and input by ``autograd.grad`` and ``autograd.backward`` where a tensor is. ``ownership_token``
    is PyTorch's means to keep the graph alive; here ``node`` does that.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return where the gradient of ``tensor`` passes: an output of its ``grad_fn``, or its gradient accumulator.

    Raises RuntimeError if ``tensor`` does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_gradient_node(tensor), tensor.output_nr)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tell autograd that the tensor, or each of the tensors, was changed in place by means that it does not see.

    A backward that needs the former contents raises then. Inference tensors have no version and are passed over.
    """
    _C._increment_version((tensor,) if isinstance(tensor, Tensor) else tensor)


class saved_tensors_hooks:
    """Inside, tensors saved for backward go through ``pack_hook`` and come back through ``unpack_hook``.

    ``pack_hook(tensor)`` may return anything, ``unpack_hook`` of that a tensor with the same contents. Only the
    innermost pair is used. Entering raises RuntimeError where hooks are disabled.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        for what, hook in (("pack_hook", self.pack_hook), ("unpack_hook", self.unpack_hook)):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks: {what} must be callable, but got {type(hook).__name__}")
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, tensors saved for backward are kept on the CPU: where all tensors of this package are.

    Accepted so that programs run unchanged; a saved tensor still shares its memory, so that a change in place is an
    error of backward, as without. ``pin_memory`` and ``device_type`` have no effect.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor, int]:
            return tensor.device, tensor.cpu(), tensor._version

        def unpack(packed: tuple[Any, Tensor, int]) -> Tensor:
            device, tensor, version = packed
            check_version(tensor, version)
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, :class:`saved_tensors_hooks` raises RuntimeError with the given message.

    Raises it on entry if hooks are in use already.
    """
    previous = _C._saved_tensors_hooks_get_disabled_error_message()
    try:
        _C._saved_tensors_hooks_disable(error_message)
        yield
    finally:
        if previous is None:
            _C._saved_tensors_hooks_enable()
        else:
            _C._saved_tensors_hooks_disable(previous)


class _MultiHandle(RemovableHandle):
    """Removes several hooks as one."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:  # type: ignore[override]
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Call ``fn`` once per backward, when the gradients of ``tensors`` have been computed.

    ``mode="all"`` waits for every tensor that this backward reaches and passes the list of gradients, with None for
    the others. ``mode="any"`` passes the first gradient that comes, and passes over tensors that do not require grad.
    Returns a handle with ``remove()``. Raises ValueError for another mode, AssertionError (with ``"all"``) for a tensor
    that does not require grad.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        wanted = [t for t in tensors if t.requires_grad]
        hooks = [_hook_for_any(fn)] * len(wanted)
    else:
        wanted = list(tensors)
        hooks = _hooks_for_all(tuple(wanted), fn)
    return _MultiHandle(tuple([t.register_hook(hook) for t, hook in zip(wanted, hooks, strict=True)]))


def _hooks_for_all(tensors: tuple[Tensor, ...], fn: Callable[[Any], None]) -> list[Callable[[Tensor], None]]:
    nodes = [_gradient_node(t) for t in tensors]
    lock = threading.Lock()
    # By run of the engine, several of which may be under way: the gradients so far, and how many are awaited.
    pending: dict[int, tuple[list[Tensor | None], list[int]]] = {}

    def hook_at(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            run = _current_run()
            with lock:
                if run not in pending:
                    awaited = sum([_C._will_engine_execute_node(node) for node in nodes])
                    pending[run] = ([None] * len(nodes), [awaited])
                grads, left = pending[run]
                grads[index] = grad
                left[0] -= 1
                done = left[0] == 0
                if done:
                    del pending[run]
            if done:
                fn(grads)

        return hook

    return [hook_at(i) for i in range(len(tensors))]


def _hook_for_any(fn: Callable[[Any], None]) -> Callable[[Tensor], None]:
    lock = threading.Lock()
    last_run = -1

    def hook(grad: Tensor) -> None:
        nonlocal last_run
        run = _current_run()
        with lock:
            first, last_run = run != last_run, run
        if first:
            fn(grad)

    return hook


def _current_run() -> int:
    run: int = _C._current_graph_task_id()
    if run == -1:
        raise AssertionError("expected this hook to be called inside a backward call")
    return run


def _gradient_node(tensor: Tensor) -> Any:
    """The ``grad_fn`` of a tensor that requires grad, or the accumulator of a leaf, reached through a view of it."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set, but the tensor does not require grad")
    with enable_grad():
        view: Any = tensor.view_as(tensor)
        return view.grad_fn.next_functions[0][0]


class _Saved:
    """A saved tensor: itself until its memory is about to change, from then on a copy."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _AllowMutationOnSavedContext:
    """The saved tensors of the graphs recorded inside, by the memory they are in; the graphs own them."""

    def __init__(self) -> None:
        self.by_memory: dict[int, weakref.WeakSet[_Saved]] = {}
        self.open = True

    def pack(self, tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        self.by_memory.setdefault(_memory(tensor), weakref.WeakSet()).add(saved)
        return saved

    def unpack(self, saved: _Saved) -> Tensor:
        if not self.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return saved.tensor

    def before_mutation(self, tensor: Tensor) -> None:
        """Copy what is saved of this memory; saved tensors of the same layout share a copy."""
        copies: dict[Any, Tensor] = {}
        with no_grad():
            for saved in self.by_memory.pop(_memory(tensor), ()):
                t = saved.tensor
                layout = (t.data_ptr(), t.dtype, tuple(t.shape), t.stride())
                if layout not in copies:
                    copies[layout] = t.clone()
                saved.tensor = copies[layout]

    def clear(self) -> None:
        self.open = False
        self.by_memory.clear()


def _memory(tensor: Tensor) -> int:
    address: int = tensor.untyped_storage().data_ptr()
    return address


class _ThreadState(threading.local):
    allows_mutation = False


_thread_state = _ThreadState()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Inside, tensors saved for backward may be changed in place: backward uses their former contents.

    A saved tensor is copied when it is first changed. Backward must be called inside as well (AssertionError
    otherwise), the contexts cannot be nested (RuntimeError).
    """
    if _thread_state.allows_mutation:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(context.pack, context.unpack):
        _thread_state.allows_mutation = True
        watch(context.before_mutation)
        try:
            yield context
        finally:
            unwatch(context.before_mutation)
            _thread_state.allows_mutation = False
            context.clear()


def memory_budget(bytes: int, *, directory: "str | os.PathLike[str] | None" = None) -> "MemoryBudget":
    """Inside, what operations save for backward is kept within a budget of memory; nothing else changes. Not in PyTorch.

    ``bytes`` bounds what is allocated above the level at entry, as far as saved tensors can make room: while it is
    more, the oldest of them, which backward needs last, are dropped, to be recomputed where pointwise operators made
    them from others a few steps ago, or moved to a temporary file (in ``directory``, or the system's) that is mapped
    into memory. Results are equal, bit for bit. Backward may run inside or outside, and with hooks around. The context
    counts: ``recomputed`` operators, ``dropped_bytes``, ``moved_bytes``.

    Changes through ``.data`` or NumPy between forward and backward are not seen. TypeError unless ``bytes`` is an int,
    ValueError unless it is positive, RuntimeError where hooks are disabled.
    """
    from ._memory_budget import MemoryBudget

    return MemoryBudget(bytes, directory)


def region_activation_memory_budget(budget: float) -> NoReturn:
    """In PyTorch, a ratio for regions under ``torch.compile``; outside of them, as always here, a RuntimeError."""
    raise RuntimeError(
        "region_activation_memory_budget has an effect under torch.compile only, where rushlight has no regions; "
        "autograd.graph.memory_budget(bytes) bounds the memory of any program"
    )


__getattr__, __dir__ = lazy_module(__name__, names={"draw": "rushlight.autograd.draw"})
