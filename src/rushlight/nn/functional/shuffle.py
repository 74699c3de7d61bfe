"""Elements moved between channels and space: operators of the core."""

from __future__ import annotations

from rushlight import channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle

__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
