"""Where a checkpoint's storages go: every storage carries the tag of the device it was saved from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight

if TYPE_CHECKING:
    from collections.abc import Callable

    Tagger = Callable[[Any], str | None]
    Restorer = Callable[[Any, str], Any]

_packages: list[tuple[int, Tagger, Restorer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Register how storages of a kind are tagged and put back; the lowest priority is asked first."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The tag under which ``storage`` is saved."""
    for _, tagger, _ in _packages:
        if tag := tagger(storage):
            return tag
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage that takes the place of ``storage``, which was saved under the tag ``location``."""
    for _, _, restorer in _packages:
        if (result := restorer(storage, location)) is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of rushlight.storage.UntypedStorage (tagged with {location})"
    )


def _restore_cpu(storage: Any, location: str) -> Any:
    return storage if location in ("cpu", "cpu:0") else None


def _restore_cuda(storage: Any, location: str) -> Any:
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
            "to map your storages to the CPU."
        )
    return None


register_package(10, lambda storage: "cpu", _restore_cpu)
register_package(20, lambda storage: None, _restore_cuda)


def restorer(map_location: Any) -> Restorer:
    """The function (storage, tag) -> storage that the ``map_location`` of ``load`` stands for.

    It may be None (each storage where it came from), a device or its name, a dictionary from tags to tags, or a
    function, whose None means that it leaves the storage to the default.
    """
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, tag: default_restore_location(storage, map_location.get(tag, tag))
    if isinstance(map_location, (str, bytes)):
        target = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda storage, tag: default_restore_location(storage, target)
    if isinstance(map_location, rushlight.device):
        return lambda storage, tag: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(f"'{type(map_location).__name__}' object is not callable: map_location")

    def restore(storage: Any, tag: str) -> Any:
        result = map_location(storage, tag)
        return default_restore_location(storage, tag) if result is None else result

    return restore
