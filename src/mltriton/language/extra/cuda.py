"""`tl.extra.cuda` (and `hip`, `intel`): where kernels written for one vendor find `libdevice`."""

from __future__ import annotations

from mltriton.language.extra import libdevice as libdevice

__all__ = ["libdevice"]
