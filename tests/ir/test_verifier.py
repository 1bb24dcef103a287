"""The rules of SSA and of structure, which text cannot break: programs are broken by hand."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import cast

import pytest

from mltriton.dialects import arith, scf, tt
from mltriton.dialects.registry import operations
from mltriton.errors import VerificationError
from mltriton.ir.attributes import IntegerAttr, StringAttr, TypeAttr
from mltriton.ir.definition import parts_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region
from mltriton.ir.parser import parse_module
from mltriton.ir.types import I32, I64, FunctionType
from mltriton.ir.verifier import verify
from mltriton.passes.levels import Known, verify_level, verify_module

PROGRAM = """
tt.func @k(%x: i32, %c: i1) {
  %a = arith.addi %x, %x : i32
  %b = arith.muli %a, %x : i32
  scf.if %c {
    %d = arith.subi %b, %a : i32
  }
  %e = arith.xori %b, %b : i32
  tt.return
}
"""


def ops_of(module: Module) -> dict[str, Operation]:
    """The operations by name."""
    return {op.name.partition(".")[2]: op for op in module.walk()}


def swap(module: Module) -> None:
    block = ops_of(module)["func"].regions[0].block
    block.ops[0], block.ops[1] = block.ops[1], block.ops[0]


def use_inner_value_outside(module: Module) -> None:
    ops = ops_of(module)
    ops["xori"].set_operand(0, ops["subi"].results[0])


def use_value_of_another_function(module: Module) -> None:
    other = parse_module(PROGRAM).body.block.ops[0]
    module.body.block.append(other)
    ops_of(module)["xori"].set_operand(1, ops_of(parse_module(PROGRAM))["addi"].results[0])


def forget_a_user(module: Module) -> None:
    op = ops_of(module)["muli"]
    op.operands[0].users.clear()


def drop_the_terminator(module: Module) -> None:
    ops_of(module)["return"].erase()


def put_a_terminator_in_the_middle(module: Module) -> None:
    func = ops_of(module)["func"]
    func.regions[0].block.ops.insert(1, made := tt.Return())
    made.block = func.regions[0].block


def end_with_another_terminator(module: Module) -> None:
    block = ops_of(module)["if"].regions[0].block
    block.ops.pop()
    block.append(tt.Return())


def forget_the_block(module: Module) -> None:
    ops_of(module)["subi"].block = None


def add_a_block(module: Module) -> None:
    region = ops_of(module)["if"].regions[1]
    region.add(Block())
    region.add(Block())


def forget_the_parent(module: Module) -> None:
    ops_of(module)["if"].regions[0].parent = None


def add_a_region(module: Module) -> None:
    op = ops_of(module)["if"]
    op.regions.append(Region([]))
    op.regions[-1].parent = op


def add_an_operand(module: Module) -> None:
    op = ops_of(module)["muli"]
    op.set_operands([*op.operands, op.operands[0]])


def give_wrong_group_sizes(module: Module) -> None:
    op = ops_of(module)["return"]
    op.segments = (3,)


def give_an_attribute_of_another_kind(module: Module) -> None:
    ops_of(module)["func"].attributes["sym_name"] = IntegerAttr(1, I32)


def change_a_type(module: Module) -> None:
    ops_of(module)["muli"].results[0].type = I64


BREAKS: dict[Callable[[Module], None], str] = {
    swap: "operand 0 is not defined before its use",
    use_inner_value_outside: "operand 0 is not defined before its use",
    use_value_of_another_function: "operand 1 is not defined before its use",
    forget_a_user: "operand 0 does not count this operation",
    drop_the_terminator: "a region ends wrongly",
    put_a_terminator_in_the_middle: "a terminator stands in the middle",
    end_with_another_terminator: "a region ends wrongly",
    forget_the_block: "in a block that it does not know",
    add_a_block: "a region has several blocks",
    forget_the_parent: "a region has another parent",
    add_a_region: "wrong number of regions",
    add_an_operand: "wrong number of operands",
    give_wrong_group_sizes: "wrong number of operands",
    give_an_attribute_of_another_kind: "attribute sym_name is of another kind",
    change_a_type: "operands and result have one type",
}


@pytest.mark.parametrize("break_it", BREAKS, ids=lambda function: function.__name__)
def test_broken_structure_is_named(break_it: Callable[[Module], None]) -> None:
    """Whatever was right before."""
    module, known = parse_module(PROGRAM, "k.mlir"), Known()
    verify(module)
    verify_module(module, known)
    break_it(module)
    for check in (lambda: verify(module), lambda: verify_module(module, known)):
        with pytest.raises(VerificationError) as caught:
            check()
        assert BREAKS[break_it] in caught.value.message


# How an operation finds those around it.
AROUND = {
    "ancestor",
    "ancestor_in",
    "block",
    "defining_block",
    "defining_op",
    "owner",
    "parent",
    "parent_op",
    "users",
    "uses",
}


def names_in(rule: types.FunctionType, cls: type[Operation]) -> set[str]:
    """What a rule and the functions of dialects that it calls name."""
    names = set(rule.__code__.co_names)
    for name in rule.__code__.co_names:
        called = getattr(cls, name, rule.__globals__.get(name))
        if isinstance(called, types.FunctionType) and called is not rule and "dialects" in called.__module__:
            names |= names_in(called, cls)
    return names


def test_operations_say_whether_their_rules_look_around() -> None:
    """Where they do not, what was right once is not asked again."""
    found = {
        cls
        for cls in operations().values()
        for rule in (cls.verify, *cls.checks)
        if AROUND & names_in(cast(types.FunctionType, rule), cls)
    }
    assert {tt.Call, scf.Yield} <= found
    assert not [cls.name for cls in found if not (cls.looks_around or cls.terminator or parts_of(cls).regions)]


def test_the_error_shows_the_operation_as_in_the_program() -> None:
    module = parse_module(PROGRAM, "k.mlir")
    swap(module)
    with pytest.raises(VerificationError) as caught:
        verify(module)
    assert caught.value.render().splitlines() == [
        "k.mlir:4:3: VerificationError: arith.muli: operand 0 is not defined before its use",
        "found a value of arith.addi that does not dominate",
        "in: %b = arith.muli %a, %x : i32",
    ]


def test_a_cloned_program_verifies() -> None:
    module = parse_module(PROGRAM)
    clone = module.clone({})
    verify(clone)
    assert str(clone) == str(module)


def test_values_of_a_loop_are_not_visible_after_it() -> None:
    block = Block([I32])
    module = Module.empty()
    module.body.block.append(
        func := tt.Func(
            attributes={
                "sym_name": StringAttr("k"),
                "function_type": TypeAttr(FunctionType((I32,), ())),
            },
            regions=[Region([block])],
        )
    )
    bound = block.arguments[0]
    loop = scf.For([bound, bound, bound], [], None, [Region([Block([I32])])], segments=(1, 1, 1, 0))
    loop.body.block.append(scf.Yield(segments=(0,)))
    block.append(loop)
    block.append(arith.AddI([loop.counter, bound], [I32]))
    block.append(tt.Return(segments=(0,)))
    with pytest.raises(VerificationError, match="found a value of a block"):
        verify(func)


LEVEL = "module attributes {{mltriton.level = {level}}} {{ tt.func @k({parameters}) {{ {body} tt.return }} }}"
# Warps whose columns lie between those of another.
APART = "#ttg.linear<{register = [[1, 0], [2, 0], [0, 2]], lane = [[4, 0]], warp = [[0, 1], [0, 4]], block = []}>"
BLOCKED = "#ttg.blocked<{sizePerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>"
OTHER = "#ttg.blocked<{sizePerWarp = [8, 4], warpsPerCTA = [1, 2], order = [1, 0]}>"


@pytest.mark.parametrize(
    ("level", "parameters", "body", "message"),
    [
        ('"tt"', "%x: tensor<8x8xf32>", "", None),
        ('"tt"', f"%x: tensor<8x8xf32, {BLOCKED}>", "", "a block has an encoding"),
        (
            '"tt"',
            "",
            "%0 = ttg.local_alloc : () -> !ttg.memdesc<4xf32, #ttg.shared_memory>",
            "belongs to a later level",
        ),
        ('"tt"', "", "%0 = gpu.subgroup_id : index", "belongs to a later level"),
        ('"tt"', "", "gpu.barrier", None),
        ('"ttg"', f"%x: tensor<8x8xf32, {BLOCKED}>", "", None),
        ('"ttg"', "%x: tensor<8x8xf32>", "", "a block has no encoding"),
        ('"ttg"', "%x: !tt.ptr<tensor<8x8xf32>>", "", "a block has no encoding"),
        ('"ttg"', "%p: !tt.ptr<f32>", "tile.prefetch %p : !tt.ptr<f32>", "belongs to the intrinsic level"),
        (
            '"ttg"',
            f"%x: tensor<8x1xf32, {BLOCKED}>",
            f"%0 = tt.broadcast %x : tensor<8x1xf32, {BLOCKED}> -> tensor<8x8xf32, {OTHER}>",
            "the encoding of an operand or result does not fit",
        ),
        (
            '"ttg"',
            f"%x: tensor<8x8xf32, {BLOCKED}>",
            f"%0 = tt.dot %x, %x, %x : tensor<8x8xf32, {BLOCKED}> * tensor<8x8xf32, {BLOCKED}>"
            f" -> tensor<8x8xf32, {BLOCKED}>",
            "the encoding of operand 0 does not fit",
        ),
        (
            '"ttg"',
            f"%x: tensor<8xf32, #ttg.slice<{{dim = 0, parent = {BLOCKED}}}>>",
            "%0 = tt.expand_dims %x {axis = 1 : i32} : "
            f"tensor<8xf32, #ttg.slice<{{dim = 0, parent = {BLOCKED}}}>> -> tensor<8x1xf32, {BLOCKED}>",
            "the encoding of the source does not fit",
        ),
        (
            '"ttg"',
            f"%x: tensor<8x8xf32, {BLOCKED}>",
            f"%0 = tt.reshape %x : tensor<8x8xf32, {BLOCKED}> -> tensor<16x4xf32, {OTHER}>",
            "a warp has only a part of a block",
        ),
        (
            '"ttg"',
            f"%x: tensor<8x8xf32, {BLOCKED}>",
            f"%0 = tt.cat %x, %x : tensor<8x8xf32, {BLOCKED}> -> tensor<16x8xf32, {BLOCKED}>",
            "a warp has only a part of a block along 0",
        ),
        (
            '"ttg"',
            f"%x: tensor<8x8xf32, {BLOCKED}>",
            f"%0 = tt.trans %x {{order = array<i32: 1, 0>}} : tensor<8x8xf32, {BLOCKED}> -> tensor<8x8xf32, {BLOCKED}>",
            "the warps' parts are not permuted",
        ),
        (
            '"ttg"',
            f"%x: tensor<8x8xf32, {APART}>",
            f"%0 = tt.trans %x {{order = array<i32: 1, 0>}} : tensor<8x8xf32, {APART}> -> tensor<8x8xf32, {APART}>",
            "the warps' parts along dimension 1 are no boxes",
        ),
        ('"warp"', f"%x: tensor<4x8xf32, {BLOCKED}>", "", None),
        ('"warp"', f"%x: tensor<8x8xf32, {BLOCKED}>", "", "a block is larger than its encoding's per-warp shape"),
        ('"warp"', "%x: tensor<4x8xf32>", "", "a block has no encoding"),
        ('"intrinsic"', "%x: tensor<4x8xf32>", "", None),
        ('"intrinsic"', f"%x: tensor<4x8xf32, {BLOCKED}>", "", "a block has an encoding"),
        ('"ttx"', "", "", "unknown level"),
    ],
)
def test_levels(level: str, parameters: str, body: str, message: str | None) -> None:
    module = parse_module(LEVEL.format(level=level, parameters=parameters, body=body))
    verify(module)
    for check in (verify_level, verify_module):
        if message is None:
            check(module)
            continue
        with pytest.raises(VerificationError) as caught:
            check(module)
        assert message in caught.value.message
