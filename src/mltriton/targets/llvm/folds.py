"""What instructions on integers give where the operands say it, and what they are on single bits.

Level: `llvm`. Tables by LLVM's names of instructions, predicates and intrinsics.
Guarantees: the instructions on single bits (i1, where true is -1 as a number with a sign) mean the same as those they
stand for; they are logical ones, which targets that know no arithmetic on booleans have too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

FOLDS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
# The end of a predicate; what is before it says whether numbers have signs.
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
# What an operation gives when its right operand is this number: the left operand itself.
NEUTRAL = {"add": 0, "sub": 0, "or": 0, "xor": 0, "mul": 1, "shl": 0, "ashr": 0, "lshr": 0, "sdiv": 1, "udiv": 1}
COMMUTES = frozenset({"add", "mul", "and", "or", "xor"})

# Arithmetic on single bits by the instruction that gives the same, and whether its right operand is negated first.
# Only a division by 1, a remainder of it and a shift by 0 are defined.
ON_BITS = {
    "add": ("xor", False),
    "sub": ("xor", False),
    "mul": ("and", False),
    **dict.fromkeys(("sdiv", "udiv"), ("and", False)),
    **dict.fromkeys(("srem", "urem", "shl", "lshr", "ashr"), ("and", True)),
}
# Minimum and maximum of single bits: the only negative number is the larger one without a sign.
EXTREMA_OF_BITS = {"llvm.umax": "or", "llvm.umin": "and", "llvm.smax": "and", "llvm.smin": "or"}
# An ordered comparison of single bits a and b: the instruction, and whether it is b (else a) that is negated first.
ORDER_OF_BITS = {
    "ugt": ("and", True),
    "uge": ("or", True),
    "ult": ("and", False),
    "ule": ("or", False),
    "slt": ("and", True),
    "sle": ("or", True),
    "sgt": ("and", False),
    "sge": ("or", False),
}
