"""Names that a module loads on first use, and what it says of names that it does not have.

A package calls `lazy_module` once at its end:

    __getattr__, __dir__ = lazy_module(__name__, submodules=("fft", "linalg"), names={"compile": "rushlight.compiler"})

`rushlight.fft` is then imported when it is first looked at, `rushlight.compile` comes from `rushlight.compiler`, and
any other name raises an error which gives PyTorch's name for it and the nearest names that exist.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from types import FrameType
from typing import Any

from ._offer import offer, offered

# The roots under which PyTorch's programs know our packages.
TORCH_ROOTS: Mapping[str, str] = {"torch": "rushlight", "torchvision": "rushlight.vision"}

# Per module: the submodules and names that it loads on first use, as it declared them; for the type stubs.
LAZY: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}


def torch_name(name: str) -> str:
    """PyTorch's dotted name for one of ours: `rushlight.vision.models` is `torchvision.models`."""
    for root, ours in sorted(TORCH_ROOTS.items(), key=lambda pair: -len(pair[1])):
        if name == ours or name.startswith(ours + "."):
            return root + name[len(ours) :]
    return name


def lazy_module(
    module: str,
    submodules: Collection[str] = (),
    names: Mapping[str, str] | None = None,
    offers: tuple[str, ...] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The module-level `__getattr__` and `__dir__` of `module`.

    `submodules` are imported when first looked at; `names` maps an attribute to the module that defines it, or to
    "module:path" where its value is the attribute at another dotted path of that module. `offers` are the prefixes of
    modules whose functions, shown here, arguments may take over (see `_offer`).
    """
    origin = dict(names or {})
    LAZY[module] = tuple(submodules), origin

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return import_module(f"{module}.{name}")  # the import system binds it, so this runs once
        if name in origin:
            source, _, path = origin[name].partition(":")
            value = attrgetter(path or name)(import_module(source))
            if offers:
                value = offered(value, offers)
            setattr(sys.modules[module], name, value)
            return value
        raise _missing(module, name, sys._getframe(1))

    if offers:
        offer(module, offers)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *submodules, *origin})

    return __getattr__, __dir__


def _missing(module: str, name: str, user: FrameType) -> Exception:
    """The error for a name that `module` lacks, of the class which Python would raise in the frame `user`."""
    if name.startswith("__"):  # asked for by Python's own protocols, thousands of times: no search
        return AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])
    message = missing_message(f"{torch_name(module)}.{name}", _public_names(module))
    if _importing(user):
        return ImportError(message, name=torch_name(module))
    return AttributeError(message, name=name, obj=sys.modules[module])


def _importing(frame: FrameType) -> bool:
    """Is this frame at `from module import name`?  Python would replace our AttributeError by its own ImportError."""
    from opcode import opmap

    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _public_names(module: str) -> tuple[str, ...]:
    return tuple(name for name in dir(sys.modules[module]) if not name.startswith("_"))


@lru_cache(maxsize=256)
def missing_message(name: str, siblings: tuple[str, ...], what: str = "") -> str:
    """Says that PyTorch's dotted `name` is not there, and which of its `siblings` come nearest."""
    parent, _, leaf = name.rpartition(".")
    near = nearest(leaf, siblings)
    message = f"rushlight has no {what}{name!r}"
    if near:
        message += "; nearest: " + ", ".join(f"{parent}.{sibling}" if parent else sibling for sibling in near)
    return message


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` candidates that are spelt like `name`, best first, whatever their case."""
    from difflib import get_close_matches

    by_lower: dict[str, str] = {}
    for candidate in candidates:
        by_lower.setdefault(candidate.lower(), candidate)
    return [by_lower[match] for match in get_close_matches(name.lower(), by_lower, n=count)]
