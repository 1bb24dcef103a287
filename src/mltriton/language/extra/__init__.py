"""`tl.extra`.

Functions of vendors' math libraries, by the names that kernels use: `tl.extra.libdevice`, `tl.extra.cuda.libdevice`,
`tl.extra.hip.libdevice`, `tl.extra.intel.libdevice`.
"""

from __future__ import annotations

from mltriton.language.extra import cuda as cuda
from mltriton.language.extra import cuda as hip
from mltriton.language.extra import cuda as intel
from mltriton.language.extra import libdevice as libdevice

__all__ = ["cuda", "hip", "intel", "libdevice"]
