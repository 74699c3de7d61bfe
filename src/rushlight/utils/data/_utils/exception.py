"""Exceptions that travel from a worker to the loader."""

from __future__ import annotations

import sys
import traceback


class _PlainText(str):
    """A message that a ``KeyError`` shows as it is, line breaks included."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception being handled, as its type and the text of its traceback, which can be pickled.

    ``where`` says what raised it, as "in DataLoader worker process 0".
    """

    def __init__(self, where: str = "in background") -> None:
        kind, _, _ = sys.exc_info()
        if kind is None:
            raise RuntimeError("there is no exception to wrap")
        self.exc_type: type[BaseException] = kind
        self.exc_name = kind.__name__
        self.exc_msg = traceback.format_exc()
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type, or ``RuntimeError`` if that cannot be made from a message."""
        message = f"Caught {self.exc_name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = _PlainText(message)
        try:
            exception = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise exception
