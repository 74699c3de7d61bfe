"""What PyTorch's modules for devices other than the CPU say here: the same as in a build of PyTorch for CPUs."""

from collections.abc import Callable
from typing import Any, NoReturn

ONLY_CPUS = "rushlight runs on CPUs only"


def unavailable(name: str, message: str, error: type[Exception] = AssertionError) -> Callable[..., NoReturn]:
    """A function of that name which needs the device, and therefore raises `error` with PyTorch's `message`."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(f"{message}: {ONLY_CPUS}, which have no {name}")

    leaf = name.rpartition(".")[2]
    function.__name__ = function.__qualname__ = leaf
    function.__doc__ = f"Raises {error.__name__}: {ONLY_CPUS}."
    return function


def unavailable_class(name: str, message: str, error: type[Exception] = RuntimeError) -> type:
    """A class of that name, good for `isinstance` and annotations, of which there can be no instance."""
    module, _, leaf = name.rpartition(".")
    raise_error = unavailable(name, message, error)
    return type(leaf, (), {"__new__": raise_error, "__module__": module, "__doc__": raise_error.__doc__})


class DeviceContext:
    """`with device(index):` chooses nothing when there is nothing to choose: None and negative indices only."""

    _message = ""

    def __init__(self, device: object) -> None:
        self.idx = -1 if device is None else device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError(f"{self._message}: {ONLY_CPUS}, which have no device {self.idx}")

    def __exit__(self, *error: object) -> None:
        return None


def device_index(device: object) -> int:
    """The number of a device given as a number, a `torch.device` or text such as "cuda:1"; 0 if it has none."""
    if isinstance(device, int):
        return device
    index = getattr(device, "index", None)
    if isinstance(index, int):
        return index
    number = str(device).rpartition(":")[2]
    return int(number) if number.isdigit() else 0
