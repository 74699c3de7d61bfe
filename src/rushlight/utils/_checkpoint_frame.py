"""What one call of ``checkpoint(..., use_reentrant=False)`` keeps, and how it computes anew.

While the function runs forward, every tensor that its operations save is replaced by an empty `_Place`. When backward
asks for the first of them, the function runs again with the same inputs, random numbers and contexts; the tensors that
are saved then, in the same order, are the contents of the places. A place gives its tensor away when it is asked, so
that backward frees it as early as without checkpointing; asked twice in one backward, it computes once more.

The inputs are themselves kept as saved tensors of a node (`_KeepInputs`): whatever hooks are around the checkpoint, an
outer checkpoint's among them, apply to them.
"""

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight.autograd import Function
from rushlight.autograd._mutation import check_version
from rushlight.autograd.grad_mode import enable_grad
from rushlight.autograd.graph import saved_tensors_hooks

__all__ = ["CheckpointError", "Frame", "GraphExecGroup", "StopRecomputation", "innermost_packer", "packing"]


class _Packers(threading.local):
    """What packs saved tensors on this thread, the innermost last: frames and recorders."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


_packers = _Packers()


@contextlib.contextmanager
def packing(packer: Any) -> Iterator[None]:
    """Inside, ``packer.pack`` and ``packer.unpack`` are the hooks of saved tensors."""
    _packers.stack.append(packer)
    try:
        with saved_tensors_hooks(packer.pack, packer.unpack):
            yield
    finally:
        _packers.stack.pop()


def innermost_packer() -> Any:
    return _packers.stack[-1] if _packers.stack else None


class CheckpointError(RuntimeError):
    """A checkpointed function did not do the same when it ran again."""


class StopRecomputation(Exception):
    """All tensors that were saved have been computed anew; the rest of the function is not needed."""


class GraphExecGroup:
    """Inside, several backwards over separate parts of one graph recompute each checkpoint once, not once each.

    No two of these backwards may need the same saved tensor. Has no effect on re-entrant checkpoints.
    """

    _current: "GraphExecGroup | None" = None

    def __enter__(self) -> None:
        if GraphExecGroup._current is not None:
            raise RuntimeError("GraphExecGroup cannot be nested.")
        GraphExecGroup._current = self

    def __exit__(self, *exc: object) -> None:
        GraphExecGroup._current = None

    @classmethod
    def _get_current_group(cls) -> "GraphExecGroup | None":
        return cls._current


class _Place:
    """Where a saved tensor was: its number among the frame's, what it looked like, and, meanwhile, itself."""

    __slots__ = ("__weakref__", "given", "index", "metadata", "values")

    def __init__(self, index: int, metadata: tuple[Any, ...] | None) -> None:
        self.index = index
        self.metadata = metadata
        self.values: dict[Any, tuple[Tensor, int]] = {}  # by run of backward; with the version it was saved at
        self.given: dict[Any, weakref.ref[Tensor]] = {}  # what was given away, while somebody has it


class _KeepInputs(Function):
    """Saves tensors, with the hooks that are in use; its output is there for its node alone."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(*tensors)
        return anchor.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("the inputs of a checkpoint are not differentiated through this node")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangents[0]  # of the anchor, which has no numbers


class _Batches:
    """The levels of vmap that inputs had; the function is to see them again when it computes anew."""

    def __init__(self, inputs: list[Tensor]) -> None:
        from rushlight._vmap.levels import open_levels, reopened

        self.levels = [_C._unbatch(t)[1] for t in inputs]
        self._open, self._reopened = open_levels(), reopened

    def again(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The inputs of these numbers."""
        return [_C._rebatch(t, levels) for t, levels in zip(values, self.levels, strict=True)]

    def reopened(self) -> AbstractContextManager[None]:
        """A context in which the levels are open."""
        return self._reopened(self._open)


class Frame:
    """One checkpointed call: see the module's text.

    ``contexts`` are entered around the recomputation, ``check_metadata`` compares what is saved then with what was
    saved first, ``journal`` (of ``debug=True``) is told of both runs and words the errors.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        preserve_rng_state: bool,
        contexts: AbstractContextManager[Any],
        check_metadata: bool,
        early_stop: bool,
        journal: Any = None,
    ) -> None:
        self.function, self.kwargs = function, kwargs
        self.contexts = contexts
        self.check_metadata, self.early_stop, self.journal = check_metadata, early_stop, journal
        self.rng_state = _C.default_generator.get_state() if preserve_rng_state else None
        self.tensor_at = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        inputs = [args[i] for i in self.tensor_at]
        self.batches = _Batches(inputs) if _C._transform_depth() and _C._highest_level(inputs) else None
        with enable_grad():
            anchor = rushlight.empty(0, requires_grad=True)
            kept = inputs if self.batches is None else [_C._unbatch(t)[0] for t in inputs]
            self.node = _KeepInputs.apply(anchor, *kept).grad_fn
        self.others = [None if isinstance(a, Tensor) else a for a in args]
        self.places: list[weakref.ref[_Place]] = []
        self.forward_is_over = False

    # -- forward

    def forward(self, args: tuple[Any, ...]) -> Any:
        with packing(self), self._noted("forward"):
            result = self.function(*args, **self.kwargs)
        self.forward_is_over = True
        return result

    def pack(self, tensor: Tensor) -> _Place:
        place = _Place(len(self.places), _metadata(tensor) if self.check_metadata else None)
        self.places.append(weakref.ref(place))
        return place

    # -- backward

    def unpack(self, place: _Place) -> Tensor:
        run: Any = GraphExecGroup._current
        if run is None:
            run = _C._current_graph_task_id()
            if run == -1:  # looked at from outside of backward
                run = object()
        known = place.given.get(run)
        tensor = known() if known is not None else None
        if tensor is not None:
            return tensor
        if run not in place.values:
            try:
                self._recompute(run)
            except CheckpointError as error:
                if self.journal is None:
                    raise
                raise CheckpointError(self.journal.explain(error)) from error
            if run not in place.values:
                raise CheckpointError(
                    "torch.utils.checkpoint: a saved tensor was asked for that the recomputation did not reach."
                )
        tensor, version = place.values.pop(run)
        check_version(tensor, version)
        place.given = {run: weakref.ref(tensor)}
        return tensor

    def _recompute(self, run: Any) -> None:
        saved = _Recorder(self, run)
        args = list(self.others)
        inputs = self.node.saved_tensors
        if self.batches is not None:
            inputs = self.batches.again(inputs)
        for i, tensor in zip(self.tensor_at, inputs, strict=True):
            args[i] = tensor
        try:
            with (
                self.batches.reopened() if self.batches is not None else contextlib.nullcontext(),
                self._random_numbers(),
                self.contexts,
                enable_grad(),
                packing(saved),
                self._noted("recomputation"),
            ):
                self.function(*args, **self.kwargs)
        except StopRecomputation as stop:
            if stop is not saved.stop:
                raise  # of a checkpoint around this one
        saved.check()

    @contextlib.contextmanager
    def _random_numbers(self) -> Iterator[None]:
        """The generator as it was in forward; afterwards again as it is now."""
        if self.rng_state is None:
            yield
            return
        now = _C.default_generator.get_state()
        _C.default_generator.set_state(self.rng_state)
        try:
            yield
        finally:
            _C.default_generator.set_state(now)

    def _noted(self, run: str) -> AbstractContextManager[Any]:
        return contextlib.nullcontext() if self.journal is None else self.journal.noting(run)


class _Recorder:
    """Fills the places of a frame, in order, with what one recomputation saves."""

    def __init__(self, frame: Frame, run: Any) -> None:
        self.frame, self.run = frame, run
        self.count = 0
        self.stop = StopRecomputation()
        # a backward inside of the function: it needs what was saved so far, and must not be reached again
        self.early_stop = frame.early_stop or not frame.forward_is_over
        self.different: list[str] = []

    def pack(self, tensor: Tensor) -> Tensor:
        frame, index = self.frame, self.count
        self.count += 1
        if index >= len(frame.places):
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                "forward pass.\n" + _TIP
            )
        place = frame.places[index]()
        if place is not None:
            if place.metadata is not None and place.metadata != _metadata(tensor):
                self.different.append(
                    f"tensor at position {index}:\nsaved metadata: {_shown(place.metadata)}\n"
                    f"recomputed metadata: {_shown(_metadata(tensor))}\n"
                )
            place.values[self.run] = tensor, tensor._version
        if self.early_stop and self.count == len(frame.places):
            raise self.stop
        return tensor

    def unpack(self, tensor: Tensor) -> Tensor:
        return tensor

    def check(self) -> None:
        expected = len(self.frame.places)
        if self.count != expected:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {expected}\nNumber of tensors saved during "
                f"recomputation: {self.count}.\n" + _TIP
            )
        if self.different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                "during the forward pass.\n" + "".join(self.different) + _TIP
            )


_TIP = (
    "\nThe function must do the same in both runs. To see the operators of both, pass `debug=True` to "
    "`torch.utils.checkpoint.checkpoint(...)`, or use `torch.utils.checkpoint.set_checkpoint_debug_enabled(True)`."
)


def _metadata(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.device


def _shown(metadata: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("shape", "dtype", "device"), metadata, strict=True))
