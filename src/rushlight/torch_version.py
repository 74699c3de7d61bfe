"""The type of ``__version__``: a string that is compared as a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["TorchVersion"]

_VERSION = re.compile(
    r"""\s*v?
    (?:(?P<epoch>\d+)!)?
    (?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_number>\d*))?
    (?:-(?P<bare_post>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?
    \s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(text: str) -> tuple[Any, ...] | None:
    """Return a tuple that sorts as PEP 440 orders versions; None if `text` is no version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    release = [int(number) for number in match["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    if match["pre"]:
        phase: tuple[int, ...] = (_PHASES[match["pre"].lower()], int(match["pre_number"] or 0))
    else:  # a mere development release comes before its alphas, the release itself after its candidates
        phase = (-1,) if match["dev"] and not match["post"] and not match["bare_post"] else (3,)
    post = int(match["bare_post"] or match["post_number"] or 0) if match["bare_post"] or match["post"] else -1
    dev = (0, int(match["dev_number"] or 0)) if match["dev"] else (1, 0)
    parts = re.split(r"[-_.]", match["local"].lower()) if match["local"] else []
    local = [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]
    return int(match["epoch"] or 0), release, phase, post, dev, local


def _other_key(other: object) -> tuple[Any, ...] | None:
    if isinstance(other, str):
        return _key(other)
    if isinstance(other, Iterable):
        return _key(".".join(map(str, other)))
    return _key(str(other)) if hasattr(other, "release") else None  # packaging's Version


class TorchVersion(str):
    """A version string that is ordered by PEP 440 against strings, tuples of numbers, and ``Version`` objects.

    What is no version is compared as a string is: ``TorchVersion("2.13.0") < "parrot"``.
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        mine, theirs = _key(self), _other_key(other)
        return mine < theirs if mine and theirs else super().__lt__(other)

    def __le__(self, other: Any) -> bool:
        mine, theirs = _key(self), _other_key(other)
        return mine <= theirs if mine and theirs else super().__le__(other)

    def __gt__(self, other: Any) -> bool:
        mine, theirs = _key(self), _other_key(other)
        return mine > theirs if mine and theirs else super().__gt__(other)

    def __ge__(self, other: Any) -> bool:
        mine, theirs = _key(self), _other_key(other)
        return mine >= theirs if mine and theirs else super().__ge__(other)

    def __eq__(self, other: object) -> bool:
        mine, theirs = _key(self), _other_key(other)
        return mine == theirs if mine and theirs else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        mine, theirs = _key(self), _other_key(other)
        return mine != theirs if mine and theirs else super().__ne__(other)

    __hash__ = str.__hash__
