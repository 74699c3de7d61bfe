"""`torch.backends.cuda`: switches of NVIDIA's libraries, which keep what is assigned to them and change nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._missing import lazy_module

_attention = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}


def is_built() -> bool:
    """Whether CUDA is built in: no."""
    return False


class cuBLASModule:
    """Switches of matrix products; AttributeError for an unknown one."""

    __slots__ = (
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
        "allow_tf32",
        "fp32_precision",
    )

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.fp32_precision = "none"


matmul = cuBLASModule()


def flash_sdp_enabled() -> bool:
    """The switch of FlashAttention."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Sets the switch of FlashAttention."""
    _attention["flash"] = enabled


def math_sdp_enabled() -> bool:
    """The switch of attention written out."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Sets the switch of attention written out."""
    _attention["math"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """The switch of memory-efficient attention."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Sets the switch of memory-efficient attention."""
    _attention["mem_efficient"] = enabled


def cudnn_sdp_enabled() -> bool:
    """The switch of cuDNN's attention."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Sets the switch of cuDNN's attention."""
    _attention["cudnn"] = enabled


def is_flash_attention_available() -> bool:
    """Whether FlashAttention is built in: no."""
    return False


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """A context in which the switches of attention are set."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)


__getattr__, __dir__ = lazy_module(__name__)
