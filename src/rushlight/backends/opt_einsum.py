"""`torch.backends.opt_einsum`: a package that orders the products of einsum, which is not used."""

from rushlight._missing import lazy_module

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether einsum asks opt_einsum for the order of its products: no."""
    return False


def get_opt_einsum() -> None:
    """The package: None."""


__getattr__, __dir__ = lazy_module(__name__)
