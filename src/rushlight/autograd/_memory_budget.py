"""Keeping what backward needs within a budget of memory, by recomputing it or moving it to a file.

Not in PyTorch, and no change to the program: `memory_budget` looks at the tensors that operations save. The memory
behind each is a `_Block`. While too much is allocated, the oldest blocks, which backward will need last, make room:

* A block that pointwise operators made from others, few steps ago, is dropped. Its `_Recipe` (the operator and its
  operands, as windows on other blocks) makes it again, bit for bit: the same loops run over the same numbers.
* Any other block moves into a temporary file that is mapped into memory, and is used from there.

A block can be dropped only where its recipe ends, after at most a certain number of steps, at blocks that are still in
memory or in the file; so a chain of pointwise operators keeps one block in some, and backward runs each of its
operators once more. Memory that something else holds, parameters above all, stays where it is.

Operators are seen by a handler of calls, saved tensors by hooks, changes in place by a watcher: a recipe whose operand
is about to change keeps a copy of it.
"""

import heapq
import itertools
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import rushlight
from rushlight import _C, Tensor

from ._mutation import check_version, fail_version, unwatch, watch
from .grad_mode import no_grad

__all__ = ["MemoryBudget"]

_SMALL = 1024  # bytes: what is smaller is kept as it is
_LONGEST = 64  # steps of a recipe, however small its blocks are


class _Window(NamedTuple):
    """A tensor as a window on a block."""

    block: "_Block"
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor, block: "_Block") -> "_Window":
        return cls(block, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

    def tensor(self) -> Tensor:
        """The tensor anew; its block must be there."""
        whole = self.block.tensor
        assert whole is not None
        if (whole.storage_offset(), whole.stride()) == (self.offset, self.stride) and whole.shape == self.size:
            return whole
        with no_grad():
            return rushlight.as_strided(whole, self.size, self.stride, self.offset).detach()


class _Recipe(NamedTuple):
    """How a block was computed: an operator over windows and numbers."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    steps: int

    def operands(self) -> "Iterator[_Block]":
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, _Window):
                yield value.block

    def run(self) -> Tensor:
        args = [value.tensor() if isinstance(value, _Window) else value for value in self.args]
        kwargs = {k: value.tensor() if isinstance(value, _Window) else value for k, value in self.kwargs.items()}
        result: Tensor = self.op(*args, **kwargs)
        return result


class _Block:
    """The memory behind saved tensors: that of `tensor`, or to be made again by `recipe`.

    `number` is the order of appearance. `saved` is true where backward asks for it, false where only recipes do.
    """

    __slots__ = ("__weakref__", "changed", "in_file", "nbytes", "number", "recipe", "saved", "tensor", "used")

    def __init__(self, number: int, nbytes: int) -> None:
        self.number, self.nbytes = number, nbytes
        self.tensor: Tensor | None = None
        self.recipe: _Recipe | None = None
        self.saved = self.in_file = self.used = self.changed = False

    @property
    def steps(self) -> int:
        """How many operators its recipe goes back; 0 without one."""
        return self.recipe.steps if self.recipe is not None else 0


class _Saved:
    """What stands in for a saved tensor: a window on a block, and the version that backward expects."""

    __slots__ = ("version", "window")

    def __init__(self, window: _Window, version: int) -> None:
        self.window, self.version = window, version


class MemoryBudget:
    """The context that ``autograd.graph.memory_budget`` returns; see there.

    ``recomputed`` counts the operators that ran again, ``moved_bytes`` what went to the file, ``dropped_bytes`` what
    was freed to be made again.
    """

    def __init__(self, limit: int, directory: "str | os.PathLike[str] | None" = None) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise TypeError(f"memory_budget(): argument 'bytes' must be int, not {type(limit).__name__}")
        if limit <= 0:
            raise ValueError(f"memory_budget(): expected a positive number of bytes, found {limit}")
        if directory is not None and not os.path.isdir(directory):
            raise FileNotFoundError(f"memory_budget(): there is no directory {os.fspath(directory)!r}")
        self.limit = limit
        self._file = _File(directory)
        self.recomputed = self.moved_bytes = self.dropped_bytes = 0
        self._base = 0
        self._largest = 0
        self._count = 0
        self._entered = False
        # blocks by the identity of their storage: those that hold it, and those whose tensor is alive
        self._holding: weakref.WeakValueDictionary[int, _Block] = weakref.WeakValueDictionary()
        self._made: dict[int, tuple[weakref.ref[Tensor], _Block]] = {}
        self._oldest: list[tuple[int, int, weakref.ref[_Block]]] = []  # a heap of blocks in memory
        self._entries = itertools.count()  # tells entries of one number apart

    def __enter__(self) -> "MemoryBudget":
        if self._entered:
            raise RuntimeError("a memory_budget cannot be entered again; make another")
        self._entered = True
        self._base = _allocated()
        _C._push_saved_tensors_default_hooks(self._pack, self._unpack)
        _C._push_call_handler(self._call)
        _watch_weakly(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_call_handler()
        _C._pop_saved_tensors_default_hooks()
        self._made.clear()

    # -- forward

    def _call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = op(*args, **kwargs)
        if (
            type(op) is _C.Operator
            and op.pointwise
            and not op.inplace
            and result.requires_grad
            and result.nbytes >= _SMALL
            and "out" not in kwargs
            and not _C._highest_level(result)  # what vmap made has no recipe: it is moved, not recomputed
        ):
            self._note(op, args, kwargs, result)
        return result

    def _note(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        """Keep the recipe of a result where all operands are known, or leaves."""
        steps = 1
        windows = []
        for value in (*args, *kwargs.values()):
            if not isinstance(value, Tensor):
                windows.append(value)
                continue
            block = self._known(value)
            if block is None:
                if value.grad_fn is not None:
                    return
                block = self._hold(value)
            elif block.tensor is not None and block.tensor.dtype != value.dtype:
                return
            steps = max(steps, block.steps + 1)
            windows.append(_Window.of(value, block))
        if steps > _LONGEST:
            return
        block = self._known(result)
        if block is not None and any(isinstance(w, _Window) and w.block is block for w in windows):
            return  # an operand itself
        if block is None:
            block = self._new(result.untyped_storage().nbytes())
            identity = _identity(result)
            self._made[identity] = (weakref.ref(result, _forgetting(self._made, identity)), block)
        block.recipe = _Recipe(
            op, tuple(windows[: len(args)]), dict(zip(kwargs, windows[len(args) :], strict=True)), steps
        )
        for operand in block.recipe.operands():
            operand.used = True

    def _pack(self, tensor: Tensor) -> Any:
        if tensor.nbytes < _SMALL:
            return tensor, tensor._version
        block = self._known(tensor) or self._new(tensor.untyped_storage().nbytes())
        if block.tensor is None:
            self._keep(block, tensor.detach())  # the program's own object would look like one that nobody else has
        elif block.tensor.dtype != tensor.dtype:  # a window through which the same bytes are other numbers
            return tensor, tensor._version
        block.saved = True
        self._make_room()
        return _Saved(_Window.of(tensor, block), tensor._version)

    def _hold(self, tensor: Tensor) -> _Block:
        block = self._new(tensor.untyped_storage().nbytes())
        self._keep(block, tensor.detach())
        return block

    def _new(self, nbytes: int) -> _Block:
        self._count += 1
        self._largest = max(self._largest, nbytes)
        return _Block(self._count, nbytes)

    def _keep(self, block: _Block, tensor: Tensor) -> None:
        tensor.untyped_storage()._compute()
        block.tensor = tensor
        self._holding[_identity(tensor)] = block
        heapq.heappush(self._oldest, (block.number, next(self._entries), weakref.ref(block)))
        if len(self._oldest) > 2 * len(self._holding) + 1024:
            self._oldest = [entry for entry in self._oldest if entry[2]() is not None]
            heapq.heapify(self._oldest)

    def _known(self, tensor: Tensor) -> _Block | None:
        identity = _identity(tensor)
        block = self._holding.get(identity)
        if block is None and identity in self._made:
            reference, made = self._made[identity]
            maker = reference()
            if maker is not None and _identity(maker) == identity:
                block = made
        return block

    # -- making room

    def _make_room(self) -> None:
        """Free the oldest blocks while more is allocated than the budget allows, less what the next operator takes."""
        limit = self.limit - min(2 * self._largest, self.limit // 2)
        busy = []
        while self._oldest and _allocated() - self._base > limit:
            _, _, reference = heapq.heappop(self._oldest)
            block = reference()
            if block is None or block.tensor is None or block.in_file:
                continue
            if block.tensor.untyped_storage()._use_count() > 1:  # by others than the block
                busy.append(reference)
            else:
                self._free(block)
        for reference in busy:  # something else holds the memory: they are asked again after all others
            heapq.heappush(self._oldest, (self._count, next(self._entries), reference))

    def _free(self, block: _Block) -> None:
        assert block.tensor is not None
        longest = max(1, min(_LONGEST, self.limit // (4 * max(block.nbytes, 1))))
        if block.recipe is not None and self._distance(block, longest) <= longest:
            self._holding.pop(_identity(block.tensor), None)
            block.tensor = None
            self.dropped_bytes += block.nbytes
        elif block.saved or block.used:
            self._file.take(block.tensor.untyped_storage())
            block.in_file = True
            block.recipe = None
            self.moved_bytes += block.nbytes

    @staticmethod
    def _distance(block: _Block, limit: int) -> int:
        """How many operators it takes to make the block; more than `limit` if that is more."""
        seen = {block}
        stack = [block]
        while stack and len(seen) <= limit:
            recipe = stack.pop().recipe
            if recipe is None:
                return limit + 1
            for operand in recipe.operands():
                if operand.tensor is None and operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
        return len(seen)

    # -- backward

    def _unpack(self, saved: Any) -> Tensor:
        if isinstance(saved, tuple):
            small: Tensor = saved[0]
            check_version(small, saved[1])
            return small
        block: _Block = saved.window.block
        if block.tensor is None:
            self._make(block)
        tensor: Tensor = saved.window.tensor().detach()  # in use from now on, so that it is not freed
        if block.changed:
            fail_version(tensor, saved.version + 1, saved.version)
        check_version(tensor, saved.version)
        self._make_room()
        return tensor

    def _make(self, wanted: _Block) -> None:
        """Compute a dropped block, and those on the way, which backward needs next if it needs them."""
        order: list[_Block] = []
        seen: set[_Block] = set()
        stack = [(wanted, False)]
        while stack:
            block, ready = stack.pop()
            if ready:
                order.append(block)
            elif block.tensor is None and block not in seen:
                seen.add(block)
                stack.append((block, True))
                assert block.recipe is not None
                stack += [(operand, False) for operand in block.recipe.operands()]
        with no_grad():
            for block in order:
                assert block.recipe is not None
                made = block.recipe.run()
                if block.saved:
                    self._keep(block, made)
                else:
                    block.tensor = made
                self.recomputed += 1
        for block in order:
            if not block.saved:
                block.tensor = None

    # -- changes in place

    def _before_change(self, tensor: Tensor) -> None:
        """A recipe keeps a copy of what is about to change; saved tensors then raise as they always do."""
        identity = _identity(tensor)
        self._made.pop(identity, None)
        block = self._holding.pop(identity, None)
        if block is None or block.tensor is None or not block.used:
            return
        block.changed = block.saved
        block.in_file = False
        with no_grad():
            self._keep(block, _copy_of_memory(block.tensor))


class _File:
    """A temporary file, mapped piece by piece; pieces whose storage is gone are used again."""

    def __init__(self, directory: "str | os.PathLike[str] | None") -> None:
        self.directory = directory
        self.file: Any = None
        self.size = 0
        self.free: dict[int, list[int]] = {}  # places by length

    def take(self, storage: Any) -> None:
        """Move the bytes of a storage into the file, for everything that uses it."""
        if self.file is None:
            self.file = tempfile.TemporaryFile(prefix="rushlight-", dir=self.directory)  # noqa: SIM115
        length = storage.nbytes()
        places = self.free.setdefault(-(-length // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY, [])
        if places:
            place = places.pop()
        else:
            place = self.size
            self.size += -(-length // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            self.file.truncate(self.size)
        piece = _Piece(self.file.fileno(), length, offset=place)
        weakref.finalize(piece, places.append, place).atexit = False
        storage._move_to(piece)
        piece.madvise(mmap.MADV_DONTNEED)  # the pages are the file's now: the process need not keep them


class _Piece(mmap.mmap):
    """A mapped piece, whose end can be watched."""


# ---- what the rest needs


def _watch_weakly(budget: MemoryBudget) -> None:
    """Tell the budget of changes as long as it lives: its graphs may outlive the block."""
    reference = weakref.ref(budget)

    def tell(tensor: Tensor) -> None:
        alive = reference()
        if alive is not None:
            alive._before_change(tensor)

    watch(tell)
    weakref.finalize(budget, unwatch, tell).atexit = False


def _forgetting(made: dict[int, Any], identity: int) -> Any:
    def forget(reference: Any) -> None:
        entry = made.get(identity)
        if entry is not None and entry[0] is reference:
            del made[identity]

    return forget


def _allocated() -> int:
    count: int = _C.memory_stats()["allocated_bytes"]
    return count


def _identity(tensor: Tensor) -> int:
    number: int = tensor.untyped_storage()._identity()
    return number


def _copy_of_memory(tensor: Tensor) -> Tensor:
    """The tensor on a copy of all of its memory, of which recipes may have other windows."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    whole = rushlight.as_strided(tensor, (count,), (1,), 0).clone()
    return rushlight.as_strided(whole, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()).detach()
