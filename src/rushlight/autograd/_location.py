"""Where in the program an operation was called, in words.

The core keeps a *place* with every recorded operation while locations are recorded, whose ``calls()`` are the code
objects and the positions in them, innermost call first. Only an error needs the text, so it is made here and then;
source lines come from the cache of ``linecache``.
"""

import linecache
import os
from collections.abc import Iterator
from types import CodeType
from typing import Protocol


class Place(Protocol):
    """What ``_C._capture_place()`` gives."""

    def calls(self) -> list[tuple[CodeType, int]]: ...


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def line_of(place: Place) -> str:
    """``file:line in function`` of the innermost call outside of this package."""
    calls = list(_calls(place))
    if not calls:
        return "(outside of Python)"
    for code, number in calls:
        if not code.co_filename.startswith(_PACKAGE):
            return f"{code.co_filename}:{number} in {code.co_name}"
    code, number = calls[0]
    return f"{code.co_filename}:{number} in {code.co_name}"


def stack_of(place: Place) -> str:
    """The calls that led to the place, outermost first, in the form of Python's tracebacks."""
    return "".join(reversed([_entry(code, number) for code, number in _calls(place)]))


def lines_of(place: Place) -> list[str]:
    """``file(line): function`` of each call, innermost first, without this package's own."""
    return [
        f"{code.co_filename}({number}): {code.co_name}"
        for code, number in _calls(place)
        if not code.co_filename.startswith(_PACKAGE)
    ]


def _calls(place: Place) -> Iterator[tuple[CodeType, int]]:
    for code, position in place.calls():
        yield code, _line(code, position)


def _line(code: CodeType, position: int) -> int:
    """The line of the instruction at a position (in bytes); that of ``def`` before the first."""
    if position < 0:
        return code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= position < end:
            return number or code.co_firstlineno
    return code.co_firstlineno


def _entry(code: CodeType, number: int) -> str:
    text = linecache.getline(code.co_filename, number).strip()
    entry = f'  File "{code.co_filename}", line {number}, in {code.co_name}\n'
    return f"{entry}    {text}\n" if text else entry
