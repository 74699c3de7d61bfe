"""The default generator: seeds, states, and blocks that leave it as it was.

For the same seed the numbers are those of PyTorch's CPU generator; ``docs/randomness.md`` states them.
"""

from collections.abc import Generator as Iteration
from contextlib import contextmanager
from typing import Any

from ._C import Generator, Tensor, default_generator

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: Any) -> Generator:
    """Begin the stream of ``seed`` in the default generator, and return the generator.

    A seed has 64 bits, signed or unsigned; others raise ValueError, as does what ``int`` refuses.
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Begin a stream whose seed the system's source of chance gives, and return the seed."""
    return int(default_generator.seed())


def initial_seed() -> int:
    """The seed that the default generator's stream began with."""
    return int(default_generator.initial_seed())


def get_rng_state() -> Tensor:
    """The default generator's state: 5,056 bytes in PyTorch's layout."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Take a state that ``get_rng_state`` gave, here or in PyTorch.

    Raises TypeError for what is no tensor of bytes, RuntimeError for another size or an inconsistent state; the
    generator is then unchanged.
    """
    default_generator.set_state(new_state)


def thread_safe_generator() -> Generator | None:
    """The generator of a worker thread of ``DataLoader``: None, since its workers are processes."""
    return None


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iteration[None, None, None]:
    """Give the default generator back its state at the end of the block.

    ``devices`` and ``device_type`` name generators of other devices, of which there are none; ``enabled=False`` makes
    the block an ordinary one.
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
