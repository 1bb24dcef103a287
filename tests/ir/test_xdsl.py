"""xDSL, another implementation of MLIR, reads and checks the generic text of every dump."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from xdsl.context import Context
from xdsl.dialects import arith, builtin, math, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.parser import Parser

from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op

from .random_modules import modules

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.mlir"))
# xDSL declares these for scalars only, where MLIR has them for tensors too.
COMPARISONS = ("cmpi", "cmpf", "select")
CONVERSIONS = ("extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "index_cast")
SCALAR_ONLY = {f"arith.{name}" for name in COMPARISONS + CONVERSIONS}


def read_by_xdsl(text: str) -> builtin.ModuleOp:
    context = Context(allow_unregistered=True)
    for dialect in (builtin.Builtin, arith.Arith, math.Math, scf.Scf):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def is_known_to_differ(op: Operation) -> bool:
    types = [*op.operand_types, *op.result_types]
    return op.name in SCALAR_ONLY and any(isinstance(type, TensorType) for type in types)


def check(module: Module) -> None:
    other = read_by_xdsl(print_op(module, generic=True))
    names: list[str] = []
    for op in other.walk():
        names.append(op.attributes["op_name__"].data if op.name == "builtin.unregistered" else op.name)  # type: ignore[union-attr]
        if not is_known_to_differ(op):
            op.verify(verify_nested_ops=False)
    assert names == [op.name for op in module.walk()]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples(path: Path) -> None:
    check(parse_module(path.read_text(encoding="utf-8")))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(module=modules())
def test_random_modules(module: Module) -> None:
    check(module)
