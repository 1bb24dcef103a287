"""What kernels are specialised for: a multiple of so many bytes is an address of which the compiler is told so, and a
multiple of as much a number. As upstream. Level: data.
"""

from __future__ import annotations

ALIGNMENT = 16
