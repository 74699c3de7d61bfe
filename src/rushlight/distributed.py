"""`torch.distributed` as a build of PyTorch without it has it: programs ask `is_available()` and go on alone."""

from typing import Any, NoReturn

from rushlight._missing import lazy_module

_UNINITIALISED = "Default process group has not been initialized, please make sure to call init_process_group."


def is_available() -> bool:
    """Whether processes can be joined into a group: no."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes has been joined: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher of PyTorch's has started this process: it has no meaning here."""
    return False


def is_nccl_available() -> bool:
    """Whether the NCCL backend was built: no."""
    return False


def is_gloo_available() -> bool:
    """Whether the Gloo backend was built: no."""
    return False


def is_mpi_available() -> bool:
    """Whether the MPI backend was built: no."""
    return False


def is_ucc_available() -> bool:
    """Whether the UCC backend was built: no."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether that backend was built: no."""
    return False


def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: there is no backend to join processes with."""
    raise RuntimeError(
        f"Distributed package doesn't have {(backend or 'any backend').upper()} built in: rushlight joins no processes"
    )


def destroy_process_group(group: object = None) -> NoReturn:
    """Raises AssertionError: there is no group."""
    raise AssertionError("Process group cannot be None: no group has been initialized")


def get_rank(group: object = None) -> NoReturn:
    """Raises ValueError: this process is in no group."""
    raise ValueError(_UNINITIALISED)


def get_world_size(group: object = None) -> NoReturn:
    """Raises ValueError: this process is in no group."""
    raise ValueError(_UNINITIALISED)


def get_backend(group: object = None) -> NoReturn:
    """Raises ValueError: this process is in no group."""
    raise ValueError(_UNINITIALISED)


def barrier(group: object = None, async_op: bool = False, device_ids: object = None) -> NoReturn:
    """Raises ValueError: this process is in no group."""
    raise ValueError(_UNINITIALISED)


__getattr__, __dir__ = lazy_module(__name__)
