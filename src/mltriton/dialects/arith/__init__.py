"""`arith`: integer and float arithmetic, on scalars and element by element on tensors.

Level: tt to intrinsic. Names, operands and text are MLIR's. All operations are pure; integers wrap; a shift by the
width or more and a division by zero give an unspecified value (they never trap on any target).
"""

# `__all__` of each module names what there is.
# ruff: noqa: F403
from mltriton.dialects.arith.base import *
from mltriton.dialects.arith.casts import *
from mltriton.dialects.arith.comparisons import *
from mltriton.dialects.arith.numbers import *
