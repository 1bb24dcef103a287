"""`import triton` where mltriton stands in for it: puts the module of its names in this one's place."""

__mltriton__ = True  # not the real one

import mltriton.as_triton  # pyright: ignore[reportUnusedImport]  # noqa: F401
