"""Integer arithmetic that launch code and kernels share, usable in grids and on constexpr values in kernels.

Level: none, plain Python integers. Imports nothing, so that a launch pays nothing for it.
"""


def cdiv(x: int, y: int) -> int:
    """Return x / y rounded up, for y > 0."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is not less than n; 0 for n < 1, as upstream does for 0."""
    return 1 << (n - 1).bit_length() if n > 0 else 0
