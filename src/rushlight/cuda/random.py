"""Random numbers of CUDA devices: seeds are accepted, so that programs which seed every device run."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rushlight._absent_device import unavailable

if TYPE_CHECKING:
    from rushlight import Tensor


def manual_seed(seed: int) -> None:
    """Accepts a seed for the current device."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Accepts a seed for all devices."""
    int(seed)


def seed() -> None:
    """Seeds the current device by chance: there is none."""


def seed_all() -> None:
    """Seeds all devices by chance: there are none."""


def set_rng_state(new_state: "Tensor", device: object = "cuda") -> None:
    """Accepts a state for a device's generator."""


def get_rng_state_all() -> "list[Tensor]":
    """The states of all devices' generators: none."""
    return []


def set_rng_state_all(new_states: "Iterable[Tensor]") -> None:
    """Accepts the states of all devices' generators."""


get_rng_state = unavailable("torch.cuda.get_rng_state", "Torch not compiled with CUDA enabled")
initial_seed = unavailable("torch.cuda.initial_seed", "Torch not compiled with CUDA enabled")
