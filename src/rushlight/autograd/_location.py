"""Where in the program an operation was called, in words: what the core keeps with nodes while locations are recorded.

Called for every recorded operation, hence no ``traceback`` module: frames are read as they are, source lines come
from the cache of ``linecache``.
"""

import linecache
import os
from collections.abc import Iterator
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def line(frame: FrameType) -> str:
    """``file:line in function`` of the innermost frame outside of this package."""
    for caller in _callers(frame):
        if not caller.f_code.co_filename.startswith(_PACKAGE):
            return f"{caller.f_code.co_filename}:{caller.f_lineno} in {caller.f_code.co_name}"
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def stack(frame: FrameType) -> str:
    """The calls that led to ``frame``, outermost first, in the form of Python's tracebacks."""
    return "".join(reversed([_entry(caller) for caller in _callers(frame)]))


def _callers(frame: FrameType) -> Iterator[FrameType]:
    caller: FrameType | None = frame
    while caller is not None:
        yield caller
        caller = caller.f_back


def _entry(frame: FrameType) -> str:
    code, number = frame.f_code, frame.f_lineno
    text = linecache.getline(code.co_filename, number, frame.f_globals).strip()
    entry = f'  File "{code.co_filename}", line {number}, in {code.co_name}\n'
    return f"{entry}    {text}\n" if text else entry
