"""A model on several devices: on CPUs, where there is one, the model itself."""

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
