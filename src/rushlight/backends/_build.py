"""What the native core says of itself, for the questions that `torch.backends` answers."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import rushlight


def has_library(name: str) -> bool:
    """Whether a library is built into the core, under the name that `rushlight info` shows."""
    libraries: dict[str, str] = rushlight._C._build_info().get("libraries", {})
    return name.lower() in (library.lower() for library in libraries)


def cpu_features() -> list[str]:
    """The instruction sets in use, in lower case."""
    features: list[str] = rushlight._C._build_info().get("cpu_features", [])
    return [feature.lower() for feature in features]


@contextmanager
def scoped(switches: MutableMapping[str, Any], **values: Any) -> Iterator[None]:
    """Sets the switches of a module and puts them back, even after an error."""
    before = {name: switches[name] for name in values}
    switches.update(values)
    try:
        yield
    finally:
        switches.update(before)
