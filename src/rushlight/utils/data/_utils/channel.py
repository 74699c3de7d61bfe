"""Messages between a loader and a worker over a stream socket, without either ever waiting for the other to read.

A blocking pipe can stop both ends: the loader writing indices to a worker that writes a batch to the loader. Here what
the socket does not take stays in an outbox until it does.
"""

from __future__ import annotations

import os
import socket
import weakref
from struct import Struct

_LENGTH = Struct("<Q")
_PIECE = 1 << 18
_open_in_this_process: weakref.WeakSet[Channel] = weakref.WeakSet()
_hook_registered = False


class Channel:
    """One end of a connection.

    A worker notices the end of its loader because no other process holds the loader's end: every process that this
    one forks closes its copies at once.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._outbox = bytearray()
        self._inbox = bytearray()

    @staticmethod
    def pair() -> tuple[Channel, socket.socket]:
        """The loader's end, and the socket from which the worker makes its own."""
        global _hook_registered
        mine, theirs = socket.socketpair()
        channel = Channel(mine)
        if not _hook_registered and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_close_inherited)
            _hook_registered = True
        _open_in_this_process.add(channel)
        return channel, theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        """Whether something waits in the outbox for the socket to take it."""
        return bool(self._outbox)

    def post(self, message: bytes) -> None:
        """Send a message, as far as the socket takes it now. Raises ``OSError`` when the other end is gone."""
        self._outbox += _LENGTH.pack(len(message))
        self._outbox += message
        self.flush()

    def flush(self) -> None:
        """Send what waits in the outbox, as far as the socket takes it now."""
        sent = 0
        with memoryview(self._outbox) as waiting:
            while sent < len(waiting):
                try:
                    sent += self._socket.send(waiting[sent : sent + _PIECE])
                except BlockingIOError:
                    break
        del self._outbox[:sent]

    def receive(self) -> list[bytearray]:
        """The messages that have arrived; raises ``EOFError`` when there are none and the other end is gone."""
        ended = False
        while True:
            try:
                piece = self._socket.recv(_PIECE)
            except BlockingIOError:
                break
            except ConnectionError:
                piece = b""
            if not piece:
                ended = True
                break
            self._inbox += piece
            if len(piece) < _PIECE:
                break
        messages = self._split()
        if ended and not messages:
            raise EOFError
        return messages

    def _split(self) -> list[bytearray]:
        messages, at = [], 0
        while len(self._inbox) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._inbox, at)
            end = at + _LENGTH.size + length
            if end > len(self._inbox):
                break
            messages.append(self._inbox[at + _LENGTH.size : end])
            at = end
        if at:
            del self._inbox[:at]
        return messages

    def close(self) -> None:
        _open_in_this_process.discard(self)
        self._socket.close()


def _close_inherited() -> None:
    for channel in list(_open_in_this_process):
        channel.close()
