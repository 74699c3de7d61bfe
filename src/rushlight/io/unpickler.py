"""A pickle machine that builds data and nothing else.

It executes every instruction of the protocols 0 to 5 that makes numbers, strings, bytes and containers. Where the
standard unpickler would import a name, call it, or set an object's state, this one asks a *world*, which knows the
few names that a checkpoint may mention. There is no way from a pickle to any other function or class.

The instructions are documented in the standard library's ``pickletools``.
"""

from __future__ import annotations

import codecs
import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# Objects share parts freely, and hashing walks every path to a part: a few dozen nested pairs have 2**40 of them.
LARGEST_KEY = 10_000

_U16, _I32, _U32, _U64, _F64 = Struct("<H"), Struct("<i"), Struct("<I"), Struct("<Q"), Struct(">d")
_STOP = object()


class World(Protocol):
    """What a pickle may reach outside of itself."""

    def find_global(self, module: str, name: str) -> Any:
        """The object that a pickle means by a module and a name in it."""

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The result of calling an object that `find_global` returned."""

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An instance of a class that `find_global` returned, not yet initialised."""

    def set_state(self, instance: Any, state: Any) -> None:
        """Give an instance the state it was saved with."""

    def extend(self, instance: Any, items: list[Any]) -> None:
        """Append to a sequence that is not a list."""

    def persistent_load(self, identifier: Any) -> Any:
        """The object that the file keeps outside of the pickle."""


class Unpickler:
    """Reads pickles from ``data`` one after the other; ``position`` is where the next one begins.

    ``data`` may be the beginning of something longer, ``limit`` bytes in all: ``longer(count)`` then returns the first
    ``count`` bytes of it.

    Raises ``EOFError`` for data that end early and ``pickle.UnpicklingError`` for anything else that a pickler
    would not have written; both name ``where`` the data come from.
    """

    def __init__(
        self,
        data: bytes,
        world: World,
        where: str,
        *,
        encoding: str = "utf-8",
        limit: int | None = None,
        longer: Callable[[int], bytes] | None = None,
    ) -> None:
        self.position = 0
        self.protocol = 0
        self._data = data
        self._end = len(data)
        self._limit = len(data) if limit is None else limit
        self._longer = longer
        self._world = world
        self._where = where
        self._encoding = encoding
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """The object of the next pickle."""
        self._stack, self._marks, self._memo, self.protocol = [], [], {}, 0
        dispatch = _DISPATCH
        try:
            while True:
                at = self.position
                if at >= self._end:
                    self._reach(at + 1)
                self.position = at + 1
                if dispatch[self._data[at]](self) is _STOP:
                    return self._stack.pop()
        except IndexError as error:
            raise self._invalid("an instruction finds too few values on the stack") from error

    def fail(self, problem: str) -> NoReturn:
        raise self._invalid(problem)

    def _invalid(self, problem: str) -> pickle.UnpicklingError:
        return pickle.UnpicklingError(
            f"{self._where}: Weights only load failed. The pickle is invalid near byte {self.position}: {problem}."
        )

    def _reach(self, end: int) -> None:
        """Make the first ``end`` bytes available."""
        if end > self._limit or self._longer is None:
            raise EOFError(f"{self._where}: the pickle ends early, after {self._limit} bytes")
        self._data = self._longer(min(self._limit, max(end, 2 * self._end)))
        self._end = len(self._data)
        if self._end < end:
            raise EOFError(f"{self._where}: the file ends early, after {self._end} bytes")

    # Reading the arguments of instructions.

    def _take(self, count: int) -> bytes:
        at = self.position
        after = at + count
        if after > self._end:
            self._reach(after)
        self.position = after
        return self._data[at:after]

    def _number(self, form: Struct) -> Any:
        at = self.position
        after = at + form.size
        if after > self._end:
            self._reach(after)
        self.position = after
        return form.unpack_from(self._data, at)[0]

    def _line(self) -> bytes:
        at = self.position
        found = self._data.find(b"\n", at)
        while found < 0:
            known = self._end
            self._reach(known + 1)
            found = self._data.find(b"\n", known)
        self.position = found + 1
        return self._data[at:found]

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            self.fail(f"a string is not UTF-8 ({error})")

    def _python2_string(self, raw: bytes) -> str | bytes:
        if self._encoding == "bytes":
            return raw
        try:
            return raw.decode(self._encoding)
        except UnicodeDecodeError as error:
            self.fail(f"a string of Python 2 does not decode ({error}); pass encoding='latin1' or encoding='bytes'")

    def _pop_mark(self) -> list[Any]:
        if not self._marks:
            self.fail("an instruction needs a mark that was never set")
        items, self._stack = self._stack, self._marks.pop()
        return items

    # Frame and stack.

    def _proto(self) -> None:
        self.protocol = self._take(1)[0]
        if self.protocol > pickle.HIGHEST_PROTOCOL:
            self.fail(f"its protocol is {self.protocol}; {pickle.HIGHEST_PROTOCOL} is the newest known")

    def _frame(self) -> None:
        end = self._number(_U64) + self.position
        if end > self._end:
            self._reach(end)

    def _stop(self) -> object:
        if len(self._stack) != 1 or self._marks:
            self.fail("it stops with values left over or missing")
        return _STOP

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def _dup(self) -> None:
        self._stack.append(self._stack[-1])

    # Numbers.

    def _int(self) -> None:
        line = self._line()
        truth = {b"00": False, b"01": True}.get(line)
        self._stack.append(self._decimal(line) if truth is None else truth)

    def _long(self) -> None:
        self._stack.append(self._decimal(self._line().removesuffix(b"L")))

    def _decimal(self, line: bytes) -> int:
        try:
            return int(line)
        except ValueError:
            self.fail(f"{line[:40]!r} is not an integer")

    def _float(self) -> None:
        line = self._line()
        try:
            self._stack.append(float(line))
        except ValueError:
            self.fail(f"{line[:40]!r} is not a number")

    def _long4(self) -> None:
        size = self._number(_I32)
        if size < 0:
            self.fail(f"an integer has {size} bytes")
        self._stack.append(int.from_bytes(self._take(size), "little", signed=True))

    # Strings.

    def _string(self) -> None:
        line = self._line()
        if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
            self.fail("a string of protocol 0 has no quotes around it")
        try:
            raw = codecs.escape_decode(line[1:-1])[0]
        except ValueError as error:
            self.fail(f"a string of protocol 0 does not decode ({error})")
        self._stack.append(self._python2_string(raw))

    def _unicode(self) -> None:
        try:
            self._stack.append(self._line().decode("raw-unicode-escape"))
        except UnicodeDecodeError as error:
            self.fail(f"a string does not decode ({error})")

    # Containers.

    def _append(self) -> None:
        item = self._stack.pop()
        self._extend([item])

    def _appends(self) -> None:
        self._extend(self._pop_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is list:
            target += items
        else:
            self._world.extend(target, items)

    def _setitem(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._set_items([key, value])

    def _setitems(self) -> None:
        self._set_items(self._pop_mark())

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            self.fail(f"it sets an item of a {type(target).__name__}")
        if len(items) % 2:
            self.fail("a key has no value")
        before = len(target)
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) is not str:
                self._check_key(key)
            target[key] = value
        if len(target) - before != len(items) // 2:
            self.fail("a dictionary has duplicate keys")

    def _check_key(self, key: Any) -> None:
        """Refuse keys that cannot be hashed, or not in reasonable time."""
        left, parts = LARGEST_KEY, [key]
        while parts:
            part = parts.pop()
            if isinstance(part, (tuple, frozenset)):
                parts.extend(part)
                left -= len(part)
                if left < 0:
                    self.fail(f"a key has more than {LARGEST_KEY} parts")
            elif type(part).__hash__ is None:
                self.fail(f"a {type(part).__name__} is used as a key")

    def _hashable(self, items: list[Any]) -> list[Any]:
        for item in items:
            self._check_key(item)
        return items

    def _dict(self) -> None:
        items = self._pop_mark()
        self._stack.append({})
        self._set_items(items)

    def _additems(self) -> None:
        items = self._hashable(self._pop_mark())
        target = self._stack[-1]
        if type(target) is not set:
            self.fail(f"it adds items to a {type(target).__name__}")
        target.update(items)

    # The memo.

    def _get(self, index: int) -> None:
        if index not in self._memo:
            self.fail(f"it recalls value {index}, which was never stored")
        self._stack.append(self._memo[index])

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    # What leads out of the pickle.

    def _global(self) -> None:
        self._find(self._text(self._line()), self._text(self._line()))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            self.fail("a global is not named by two strings")
        self._find(module, name)

    def _find(self, module: str, name: str) -> None:
        if self.protocol < 3:  # up to protocol 2, names are those of Python 2
            if (module, name) in NAME_MAPPING:
                module, name = NAME_MAPPING[module, name]
            else:
                module = IMPORT_MAPPING.get(module, module)
        self._stack.append(self._world.find_global(module, name))

    def _reduce(self) -> None:
        args, function = self._stack.pop(), self._stack.pop()
        self._stack.append(self._world.call(function, self._arguments(args)))

    def _newobj(self) -> None:
        args, cls = self._stack.pop(), self._stack.pop()
        self._stack.append(self._world.new(cls, self._arguments(args), {}))

    def _newobj_ex(self) -> None:
        kwargs, args, cls = self._stack.pop(), self._stack.pop(), self._stack.pop()
        if type(kwargs) is not dict or not all(type(key) is str for key in kwargs):
            self.fail("keyword arguments are not a dictionary of names")
        self._stack.append(self._world.new(cls, self._arguments(args), kwargs))

    def _arguments(self, args: Any) -> tuple[Any, ...]:
        if type(args) is not tuple:
            self.fail(f"arguments are a {type(args).__name__}, not a tuple")
        return args

    def _build(self) -> None:
        state = self._stack.pop()
        self._world.set_state(self._stack[-1], state)

    def _persid(self) -> None:
        self._stack.append(self._world.persistent_load(self._text(self._line())))

    def _binpersid(self) -> None:
        self._stack.append(self._world.persistent_load(self._stack.pop()))


def _push(read: Callable[[Unpickler], Any]) -> Callable[[Unpickler], None]:
    """An instruction that puts what ``read`` returns on the stack."""

    def instruction(machine: Unpickler) -> None:
        value = read(machine)  # first, for it may replace the stack
        machine._stack.append(value)

    return instruction


def _tuple_of(count: int) -> Callable[[Unpickler], None]:
    def instruction(machine: Unpickler) -> None:
        stack = machine._stack
        if len(stack) < count:
            raise IndexError
        stack[-count:] = [tuple(stack[-count:])]

    return instruction


def _refuse(code: int) -> Callable[[Unpickler], None]:
    forbidden = {
        pickle.INST[0]: "INST, which calls a class by its name",
        pickle.OBJ[0]: "OBJ, which calls a class by its name",
        pickle.EXT1[0]: "EXT1, which names a registered class",
        pickle.EXT2[0]: "EXT2, which names a registered class",
        pickle.EXT4[0]: "EXT4, which names a registered class",
        pickle.NEXT_BUFFER[0]: "NEXT_BUFFER, which refers to memory outside of the file",
        pickle.READONLY_BUFFER[0]: "READONLY_BUFFER, which refers to memory outside of the file",
    }
    problem = f"Unsupported operand {code}" + (f" ({forbidden[code]})" if code in forbidden else "")

    def instruction(machine: Unpickler) -> None:
        machine.fail(problem)

    return instruction


def _instructions() -> list[Callable[[Unpickler], Any]]:
    """The instruction of every code; unknown and forbidden ones say so."""
    u = Unpickler
    byte: Callable[[Unpickler], int] = lambda m: m._take(1)[0]  # noqa: E731 - a table reads best with short names
    u16: Callable[[Unpickler], int] = lambda m: m._number(_U16)  # noqa: E731
    u32: Callable[[Unpickler], int] = lambda m: m._number(_U32)  # noqa: E731
    u64: Callable[[Unpickler], int] = lambda m: m._number(_U64)  # noqa: E731
    known: dict[bytes, Callable[[Unpickler], Any]] = {
        pickle.PROTO: u._proto,
        pickle.FRAME: u._frame,
        pickle.STOP: u._stop,
        pickle.MARK: u._mark,
        pickle.POP: u._pop,
        pickle.POP_MARK: u._pop_mark,
        pickle.DUP: u._dup,
        pickle.NONE: _push(lambda m: None),
        pickle.NEWTRUE: _push(lambda m: True),
        pickle.NEWFALSE: _push(lambda m: False),
        pickle.INT: u._int,
        pickle.LONG: u._long,
        pickle.FLOAT: u._float,
        pickle.BININT: _push(lambda m: m._number(_I32)),
        pickle.BININT1: _push(byte),
        pickle.BININT2: _push(u16),
        pickle.LONG1: _push(lambda m: int.from_bytes(m._take(byte(m)), "little", signed=True)),
        pickle.LONG4: u._long4,
        pickle.BINFLOAT: _push(lambda m: m._number(_F64)),
        pickle.STRING: u._string,
        pickle.BINSTRING: _push(lambda m: m._python2_string(m._take(u32(m)))),
        pickle.SHORT_BINSTRING: _push(lambda m: m._python2_string(m._take(byte(m)))),
        pickle.UNICODE: u._unicode,
        pickle.BINUNICODE: _push(lambda m: m._text(m._take(u32(m)))),
        pickle.SHORT_BINUNICODE: _push(lambda m: m._text(m._take(byte(m)))),
        pickle.BINUNICODE8: _push(lambda m: m._text(m._take(u64(m)))),
        pickle.BINBYTES: _push(lambda m: m._take(u32(m))),
        pickle.SHORT_BINBYTES: _push(lambda m: m._take(byte(m))),
        pickle.BINBYTES8: _push(lambda m: m._take(u64(m))),
        pickle.BYTEARRAY8: _push(lambda m: bytearray(m._take(u64(m)))),
        pickle.EMPTY_LIST: _push(lambda m: []),
        pickle.EMPTY_DICT: _push(lambda m: {}),
        pickle.EMPTY_TUPLE: _push(lambda m: ()),
        pickle.EMPTY_SET: _push(lambda m: set()),
        pickle.LIST: _push(lambda m: m._pop_mark()),
        pickle.TUPLE: _push(lambda m: tuple(m._pop_mark())),
        pickle.TUPLE1: _tuple_of(1),
        pickle.TUPLE2: _tuple_of(2),
        pickle.TUPLE3: _tuple_of(3),
        pickle.DICT: u._dict,
        pickle.FROZENSET: _push(lambda m: frozenset(m._hashable(m._pop_mark()))),
        pickle.APPEND: u._append,
        pickle.APPENDS: u._appends,
        pickle.SETITEM: u._setitem,
        pickle.SETITEMS: u._setitems,
        pickle.ADDITEMS: u._additems,
        pickle.GET: lambda m: m._get(m._decimal(m._line())),
        pickle.BINGET: lambda m: m._get(byte(m)),
        pickle.LONG_BINGET: lambda m: m._get(u32(m)),
        pickle.PUT: lambda m: m._put(m._decimal(m._line())),
        pickle.BINPUT: lambda m: m._put(byte(m)),
        pickle.LONG_BINPUT: lambda m: m._put(u32(m)),
        pickle.MEMOIZE: lambda m: m._put(len(m._memo)),
        pickle.GLOBAL: u._global,
        pickle.STACK_GLOBAL: u._stack_global,
        pickle.REDUCE: u._reduce,
        pickle.NEWOBJ: u._newobj,
        pickle.NEWOBJ_EX: u._newobj_ex,
        pickle.BUILD: u._build,
        pickle.PERSID: u._persid,
        pickle.BINPERSID: u._binpersid,
    }
    return [known[code] if (code := bytes([number])) in known else _refuse(number) for number in range(256)]


_DISPATCH = _instructions()
