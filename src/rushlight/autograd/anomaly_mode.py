"""Finding the operation whose derivative went wrong (``torch.autograd.anomaly_mode``).

The core keeps the mode, for all threads as PyTorch does: ``_C.is_anomaly_enabled()``,
``_C.is_anomaly_check_nan_enabled()`` and ``_C._set_anomaly_enabled(enabled, check_nan)``.
"""

import warnings
from typing import Any

from rushlight import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Inside, an error of backward also shows where its operation was recorded, and NaN is an error.

    A forward pass inside stores with each operation the lines that called it; when its backward raises, those lines
    are shown as a warning before the error. With ``check_nan`` a backward that produces NaN raises RuntimeError. This
    slows programs down: for debugging only.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc: Any) -> None:
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Turn anomaly mode on or off: at once as a function, until the end of the block as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        """Nothing is left to do: the constructor has switched."""

    def __exit__(self, *exc: Any) -> None:
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)
