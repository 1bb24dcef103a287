"""`arith`: integer and float arithmetic, on scalars and element by element on tensors.

Level: tt to intrinsic. Names, operands and text are MLIR's. All operations are pure; integers wrap; a shift by the
width or more and a division by zero give an unspecified value (they never trap on any target).
"""

from mltriton.dialects.arith.base import Binary as Binary
from mltriton.dialects.arith.base import Cast as Cast
from mltriton.dialects.arith.base import Constant as Constant
from mltriton.dialects.arith.base import Elementwise as Elementwise
from mltriton.dialects.arith.base import FloatBinary as FloatBinary
from mltriton.dialects.arith.base import FloatUnary as FloatUnary
from mltriton.dialects.arith.base import IntegerBinary as IntegerBinary
from mltriton.dialects.arith.base import IntegerUnary as IntegerUnary
from mltriton.dialects.arith.base import Pure as Pure
from mltriton.dialects.arith.base import Unary as Unary
from mltriton.dialects.arith.base import filled as filled
from mltriton.dialects.arith.base import integer as integer
from mltriton.dialects.arith.casts import Bitcast as Bitcast
from mltriton.dialects.arith.casts import ExtF as ExtF
from mltriton.dialects.arith.casts import ExtSI as ExtSI
from mltriton.dialects.arith.casts import ExtUI as ExtUI
from mltriton.dialects.arith.casts import FPToSI as FPToSI
from mltriton.dialects.arith.casts import FPToUI as FPToUI
from mltriton.dialects.arith.casts import IndexCast as IndexCast
from mltriton.dialects.arith.casts import SIToFP as SIToFP
from mltriton.dialects.arith.casts import TruncF as TruncF
from mltriton.dialects.arith.casts import TruncI as TruncI
from mltriton.dialects.arith.casts import UIToFP as UIToFP
from mltriton.dialects.arith.comparisons import CmpF as CmpF
from mltriton.dialects.arith.comparisons import CmpI as CmpI
from mltriton.dialects.arith.comparisons import Select as Select
from mltriton.dialects.arith.numbers import AddF as AddF
from mltriton.dialects.arith.numbers import AddI as AddI
from mltriton.dialects.arith.numbers import AndI as AndI
from mltriton.dialects.arith.numbers import CeilDivSI as CeilDivSI
from mltriton.dialects.arith.numbers import DivF as DivF
from mltriton.dialects.arith.numbers import DivSI as DivSI
from mltriton.dialects.arith.numbers import DivUI as DivUI
from mltriton.dialects.arith.numbers import FloorDivSI as FloorDivSI
from mltriton.dialects.arith.numbers import MaximumF as MaximumF
from mltriton.dialects.arith.numbers import MaxNumF as MaxNumF
from mltriton.dialects.arith.numbers import MaxSI as MaxSI
from mltriton.dialects.arith.numbers import MaxUI as MaxUI
from mltriton.dialects.arith.numbers import MinimumF as MinimumF
from mltriton.dialects.arith.numbers import MinNumF as MinNumF
from mltriton.dialects.arith.numbers import MinSI as MinSI
from mltriton.dialects.arith.numbers import MinUI as MinUI
from mltriton.dialects.arith.numbers import MulF as MulF
from mltriton.dialects.arith.numbers import MulI as MulI
from mltriton.dialects.arith.numbers import NegF as NegF
from mltriton.dialects.arith.numbers import OrI as OrI
from mltriton.dialects.arith.numbers import RemF as RemF
from mltriton.dialects.arith.numbers import RemSI as RemSI
from mltriton.dialects.arith.numbers import RemUI as RemUI
from mltriton.dialects.arith.numbers import ShLI as ShLI
from mltriton.dialects.arith.numbers import ShRSI as ShRSI
from mltriton.dialects.arith.numbers import ShRUI as ShRUI
from mltriton.dialects.arith.numbers import SubF as SubF
from mltriton.dialects.arith.numbers import SubI as SubI
from mltriton.dialects.arith.numbers import XOrI as XOrI
