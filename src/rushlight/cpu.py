"""`torch.cpu`: the CPU through the interface of the other devices, so that code can be written for any of them."""

from types import TracebackType

from rushlight._missing import lazy_module


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def device_count() -> int:
    """The number of CPU devices: 1, however many cores it has."""
    return 1


def is_initialized() -> bool:
    """Whether the CPU is ready: yes."""
    return True


def current_device() -> str:
    """The device in use."""
    return "cpu"


def set_device(device: object) -> None:
    """Accepts the only device."""


def synchronize(device: object = None) -> None:
    """Waits for nothing: operations on the CPU have ended when they return."""


class Stream:
    """The order of operations on the CPU, of which there is one."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: "Stream") -> None:
        """Waits for nothing: operations on the CPU have ended when they return."""

    def record_event(self) -> None:
        """Records nothing: operations on the CPU have ended when they return."""

    def wait_event(self, event: "Event") -> None:
        """Waits for nothing: operations on the CPU have ended when they return."""


class Event:
    """A point in the order of operations, reached when it is recorded."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing

    def query(self) -> bool:
        """Whether the point has been reached: yes."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Records nothing: operations on the CPU have ended when they return."""

    def synchronize(self) -> None:
        """Waits for nothing: operations on the CPU have ended when they return."""

    def wait(self, stream: Stream | None = None) -> None:
        """Waits for nothing: operations on the CPU have ended when they return."""


_DEFAULT_STREAM = Stream()
_current = _DEFAULT_STREAM


def current_stream(device: object = None) -> Stream:
    """The stream of the innermost `with torch.cpu.stream(...)`."""
    return _current


class StreamContext:
    """`with torch.cpu.stream(s):` makes `s` the current stream; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._previous = _DEFAULT_STREAM

    def __enter__(self) -> None:
        global _current
        self._previous = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _current
        _current = self._previous


def stream(stream: Stream | None) -> StreamContext:
    """A context in which `stream` is current."""
    return StreamContext(stream)


__getattr__, __dir__ = lazy_module(__name__)
