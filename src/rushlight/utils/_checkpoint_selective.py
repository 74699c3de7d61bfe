"""Checkpoints that keep the results of some operators and recompute the rest (``torch.utils.checkpoint``).

PyTorch asks the policy below autograd, where operators run; here calls of operators from Python are watched. An
operator whose result was kept is not run again: its result is handed out, and what it saved for backward is handed to
the frame from the inputs of the second run, the kept result, or, where it is neither (the statistics of a
normalisation), from a copy of the reference. Operators that change or return their input's memory always run again.

A policy sees the operator as PyTorch's dispatcher names it: ``a @ b`` of matrices and ``linear`` without bias are
``mm``, ``linear`` with bias is ``addmm``, a product of batches is ``bmm``. ``rushlight.ops.aten.mm.default`` is
``rushlight.mm``.
"""

import enum
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight.autograd import Function
from rushlight.autograd.graph import saved_tensors_hooks

from ._checkpoint_frame import innermost_packer

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result: kept, or computed anew in backward.

    ``MUST_`` and ``PREFER_`` mean the same here, and offloading to the CPU means keeping.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """What a policy is told beside the call: ``op_output``, its result. ``is_recompute`` is always False."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


SAC_IGNORED_OPS: set[Any] = {Tensor.detach}

PolicyOrOps = Callable[..., CheckpointPolicy | bool] | Sequence[Any]


def create_selective_checkpoint_contexts(
    policy_fn_or_list: PolicyOrOps, allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the two contexts of a selective checkpoint, for ``context_fn`` of :func:`checkpoint`.

    ``policy_fn(ctx, op, *args, **kwargs)`` returns a :class:`CheckpointPolicy` (or True for ``MUST_SAVE``, False for
    ``PREFER_RECOMPUTE``); a list of operators means to keep theirs. Raises TypeError for anything else, ValueError for
    an element that is no operator; in backward, RuntimeError for a second backward, and where a kept result was changed
    in place. With ``allow_cache_entry_mutation`` copies are kept, so that such changes do no harm.
    """
    if isinstance(policy_fn_or_list, (list, tuple)):
        kept = list(policy_fn_or_list)
        for op in kept:
            if not isinstance(op, _C.Operator):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                    "An operator is, for example, torch.ops.aten.mm.default, or torch.mm."
                )
        policy: Callable[..., Any] = partial(_is_listed, kept)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    cache = _Cache(policy, allow_cache_entry_mutation)
    return _Handling(cache.keep), _Handling(cache.restore, cache.begin_use)


def _is_listed(ops: list[Any], ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> bool:
    return op in ops


class _Kept:
    """The result of one call, what the call saved for backward, as (kind, number or tensor) in order, and the state of
    the generator behind it, where the call drew random numbers."""

    def __init__(self, result: Any, saved: list[tuple[str, Any]], rng_state: Tensor | None, copied: bool) -> None:
        outputs = _tensors(result)
        self.requires_grad = [t.requires_grad for t in outputs]
        self.outputs = [t.detach().clone() if copied else t.detach() for t in outputs]
        self.rng_state = rng_state
        self.versions = [t._version for t in self.outputs]
        self.result = result if not isinstance(result, (Tensor, tuple, list)) else None
        self.type: Any = None if isinstance(result, Tensor) else type(result)
        self.saved = saved


class _Cache:
    """The kept results of one checkpointed call, per operator in the order of its calls; None where it runs again."""

    def __init__(self, policy: Callable[..., Any], allow_mutation: bool) -> None:
        self.policy, self.allow_mutation = policy, allow_mutation
        self.calls: dict[Any, list[_Kept | None]] = {}
        self.next_call: dict[Any, int] = {}
        self.used = False

    def begin_use(self) -> None:
        if self.used:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        self.used = True

    def keep(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packer = innermost_packer()
        if packer is None or op in SAC_IGNORED_OPS:
            return op(*args, **kwargs)
        saved: list[Tensor] = []

        def pack(tensor: Tensor) -> Any:
            saved.append(tensor)
            return packer.pack(tensor)

        before = _C.default_generator.get_state()
        if _C._innermost_pack_hook() == packer.pack:
            with saved_tensors_hooks(pack, packer.unpack):
                result = op(*args, **kwargs)
        else:  # the function has hooks of its own in use, which keep what is saved
            result = op(*args, **kwargs)
        named = _dispatched(op, args, kwargs)
        choice = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=result), named, *args, **kwargs)
        if isinstance(choice, bool):
            choice = CheckpointPolicy.MUST_SAVE if choice else CheckpointPolicy.PREFER_RECOMPUTE
        keeps = choice not in _RECOMPUTED and not _shares_memory(op, args, kwargs, result)
        entry = None
        if keeps:
            after = _C.default_generator.get_state()
            origins = _origins(saved, _all_tensors(args, kwargs), _tensors(result))
            entry = _Kept(result, origins, None if rushlight.equal(before, after) else after, self.allow_mutation)
        self.calls.setdefault(op, []).append(entry)
        return result

    def restore(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packer = innermost_packer()
        if packer is None or op in SAC_IGNORED_OPS:
            return op(*args, **kwargs)
        number = self.next_call.get(op, 0)
        self.next_call[op] = number + 1
        calls = self.calls.get(op, [])
        if number >= len(calls):
            raise RuntimeError(
                f"Operator '{op.__name__}' was called {len(calls)} times in the forward of a selective checkpoint, but "
                "more often in its recomputation."
            )
        kept, calls[number] = calls[number], None
        if kept is None:
            return op(*args, **kwargs)
        if not self.allow_mutation and any(t._version != v for t, v in zip(kept.outputs, kept.versions, strict=True)):
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        if kept.rng_state is not None:
            _C.default_generator.set_state(kept.rng_state)
        inputs = _all_tensors(args, kwargs)
        for kind, which in kept.saved:
            packer.pack(
                (inputs[which] if kind == "input" else kept.outputs[which]).detach() if kind != "own" else which
            )
        if kept.type is None and kept.result is not None:
            return kept.result
        outputs = [
            _Restored.apply(_anchor(), t) if grad else t
            for t, grad in zip(kept.outputs, kept.requires_grad, strict=True)
        ]
        if kept.type is None:
            return outputs[0]
        return kept.type(outputs)


class _Restored(Function):
    """A kept result with a history, which nobody will follow, so that what is computed from it is recorded."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, kept: Tensor) -> Tensor:  # type: ignore[override]
        return kept.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None


def _anchor() -> Tensor:
    return rushlight.empty(0, requires_grad=True)


class _Handling:
    """Inside, the handler stands in for operators. May be entered again."""

    def __init__(self, handler: Callable[..., Any], begin: Callable[[], None] | None = None) -> None:
        self.handler, self.begin = handler, begin

    def __enter__(self) -> None:
        if self.begin is not None:
            self.begin()
        _C._push_call_handler(self.handler)

    def __exit__(self, *exc: object) -> None:
        _C._pop_call_handler()


_PRODUCTS: dict[tuple[int, ...], Any] = {(2, 2): rushlight.mm, (2, 1): rushlight.mv, (1, 1): rushlight.dot}


def _dispatched(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operator that PyTorch's dispatcher sees for this call."""
    if op.__name__ == "matmul":
        dims = tuple([t.dim() for t in _all_tensors(args, kwargs)[:2]])
        return _PRODUCTS.get(dims, rushlight.bmm)
    if op.__name__ == "linear":
        return rushlight.addmm if len(_all_tensors(args, kwargs)) == 3 else rushlight.mm
    if op.__name__ in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        return rushlight.convolution
    return op


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [part for part in value if isinstance(part, Tensor)] if isinstance(value, (tuple, list)) else []


def _all_tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    return [t for value in (*args, *kwargs.values()) for t in _tensors(value)]


def _memory(tensor: Tensor) -> int:
    address: int = tensor.untyped_storage()._identity()
    return address


def _window(tensor: Tensor) -> tuple[Any, ...]:
    return _memory(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def _shares_memory(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
    inputs = {_memory(t) for t in _all_tensors(args, kwargs)}
    return any(_memory(t) in inputs for t in _tensors(result))


def _origins(saved: list[Tensor], inputs: list[Tensor], outputs: list[Tensor]) -> list[tuple[str, Any]]:
    """Of each saved tensor: which input or output of the call it is; itself where it is neither."""
    known: dict[Any, tuple[str, Any]] = {_window(t): ("output", i) for i, t in enumerate(outputs)}
    known.update({_window(t): ("input", i) for i, t in enumerate(inputs)})
    return [known.get(_window(t), ("own", t)) for t in saved]
