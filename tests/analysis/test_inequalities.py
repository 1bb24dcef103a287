"""What is said never to be negative never is: random scalars, evaluated for many arguments."""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np
import pytest

from mltriton.analysis.affine.formulas import Formulas
from mltriton.analysis.affine.inequalities import holds
from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.dialects import arith, tt
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Value
from mltriton.ir.parser import parse_module

OPERATIONS = ("addi", "subi", "muli", "divsi", "divsi", "remsi", "remsi", "minsi", "maxsi")
SIZES = range(-3, 5)


def scalars(seed: int) -> tt.Func:
    """A function that computes scalars of a program's ids and two arguments."""
    random = np.random.default_rng(seed)
    names = ["%x", "%y", "%m", "%n"]
    lines = ["tt.func @f(%m: i32, %n: i32) {"]
    lines += [f"  %{name} = tt.get_program_id {name} : i32" for name in "xy"]
    for number in (1, 2, 8):
        lines.append(f"  %c{number} = arith.constant {number} : i32")
        names.append(f"%c{number}")
    for number in range(9):
        a, b = (names[i] for i in random.integers(0, len(names), 2))
        lines.append(f"  %v{number} = arith.{random.choice(OPERATIONS)} {a}, {b} : i32")
        names.append(f"%v{number}")
    return cast(tt.Func, parse_module("\n".join([*lines, "  tt.return", "}"]), "scalars.mlir").body.block.ops[0])


def computed(function: tt.Func, ids: tuple[int, int], sizes: tuple[int, int]) -> dict[Value, int]:
    """Every scalar of one program, in unbounded numbers; a division by zero gives the dividend, and nothing is left."""
    known: dict[Value, int] = dict(zip(function.body.block.arguments, sizes, strict=True))
    for op in function.body.block.ops[:-1]:
        if isinstance(op, tt.GetProgramId):
            known[op.result] = ids[len(known) - 2]
        elif isinstance(op, arith.Constant):
            known[op.result] = cast(int, splat_of(op.result))
        else:
            a, b = (known[value] for value in op.operands)
            known[op.results[0]] = MEANINGS[type(op)](a, b)
    return known


def quotient(a: int, b: int) -> int:
    return a if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MEANINGS = {
    arith.AddI: lambda a, b: a + b,
    arith.SubI: lambda a, b: a - b,
    arith.MulI: lambda a, b: a * b,
    arith.DivSI: quotient,
    arith.RemSI: lambda a, b: a - quotient(a, b) * b,
    arith.MinSI: min,
    arith.MaxSI: max,
}


def value_of(formula: Polynomial, known: dict[Value, int]) -> int:
    return sum(
        factor * int(np.prod([known[value] for value in m], dtype=object)) for m, factor in formula.terms.items()
    )


@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 250), marks=pytest.mark.slow)])
def test_what_holds_is_true(seeds: range) -> None:
    proved = 0
    for seed in seeds:
        function, random = scalars(seed), np.random.default_rng(seed)
        formulas = Formulas(function)
        programs = [
            computed(function, ids, sizes) for ids in product(range(4), repeat=2) for sizes in product(SIZES, repeat=2)
        ]
        values = [op.results[0] for op in function.body.block.ops[:-1]]
        for _ in range(12):
            goal, *facts = (_difference(formulas, values, random) for _ in range(random.integers(1, 4)))
            if holds(goal, facts, formulas.scalar):
                proved += 1
                for known in programs:
                    if all(value_of(fact, known) >= 0 for fact in facts):
                        assert value_of(goal, known) >= 0, f"seed {seed}"
    assert proved > 2 * len(seeds)


def _difference(formulas: Formulas, values: list[Value], random: np.random.Generator) -> Polynomial:
    a, b = (formulas.scalar(values[i]) for i in random.integers(0, len(values), 2))
    return a + Polynomial.constant(int(random.integers(-1, 3))) - (b if random.random() < 0.5 else Polynomial({}))
