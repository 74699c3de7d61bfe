"""Streams, events and graphs of CUDA devices: named, never made."""

from rushlight._absent_device import unavailable, unavailable_class

_NOT_COMPILED = "Torch not compiled with CUDA enabled"

Stream = unavailable_class("torch.cuda.Stream", "torch.cuda.Stream requires CUDA support")
ExternalStream = unavailable_class("torch.cuda.ExternalStream", "torch.cuda.Stream requires CUDA support")
Event = unavailable_class("torch.cuda.Event", "Tried to instantiate dummy base class Event")
CUDAGraph = unavailable_class("torch.cuda.CUDAGraph", "Tried to instantiate dummy base class CUDAGraph")
graph = unavailable_class("torch.cuda.graph", "torch.cuda.Stream requires CUDA support")

current_stream = unavailable("torch.cuda.current_stream", _NOT_COMPILED)
default_stream = unavailable("torch.cuda.default_stream", _NOT_COMPILED)


class StreamContext:
    """`with torch.cuda.stream(None):` changes nothing; there is no other stream to choose."""

    def __init__(self, stream: None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def stream(stream: None) -> StreamContext:
    """A context in which `stream` is current."""
    return StreamContext(stream)


def set_stream(stream: None) -> None:
    """Accepts None, which chooses nothing."""


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being captured: no."""
    return False
