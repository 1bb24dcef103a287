"""Small modules for the tests of the Xe target: every built-in function, and one kernel of each kind by hand."""

from __future__ import annotations

from mltriton.targets.llvm.types import I32, VOID, Value, constant
from mltriton.targets.llvm.writer import Module
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin

# A block that each kind of access takes: bytes of an element, columns, rows, blocks.
BLOCKS = {
    xe.BLOCK_LOAD: (2, 16, 8, 1),
    xe.BLOCK_LOAD_VNNI: (2, 16, 16, 1),
    xe.BLOCK_LOAD_TRANSPOSE: (4, 8, 16, 1),
    xe.BLOCK_STORE: (4, 16, 8, 1),
    xe.BLOCK_PREFETCH: (2, 16, 8, 1),
}
BARRIERS = {
    xe.BARRIER: (2, 2, 0x110),
    xe.BARRIER_ARRIVE: (2, 2, 0),
    xe.BARRIER_WAIT: (2, 2, 0),
    xe.FENCE: (2, 0x108),
}


def calling(builtins: list[tuple[Builtin, dict[int, int]]]) -> str:
    """A module with one function for each built-in function: arguments are parameters but for the constants given."""
    module = Module()
    for number, (builtin, constants) in enumerate(builtins):
        types = builtin.parameter_types
        parameters = [(f"a{i}", type_) for i, type_ in enumerate(types)]
        function = module.function(f"call_{number}", builtin.result_type, parameters, linkage="")
        arguments: list[Value] = [
            constant(I32, constants[i]) if i in constants else value for i, value in enumerate(function.parameters)
        ]
        result = builtin.call(function, *arguments)
        function.ret(None if builtin.result_type == VOID else result)
    return module.text


def constants_of(builtin: Builtin) -> dict[int, int]:
    """The arguments that must be constants, by their place."""
    if "GroupNonUniform" in builtin.name:
        return {0: 3, 1: 0}
    return dict(enumerate(BLOCKS.get(builtin, BARRIERS.get(builtin, ()))))


def every_call() -> str:
    """Each function of the table, called once; products with the operands of each dtype."""
    others = [builtin for builtin in xe.every_builtin() if builtin.name != xe.DPAS]
    calls = [(builtin, constants_of(builtin)) for builtin in others]
    for product in xe.DPAS_TABLE.values():
        calls += [(product.builtin(rows), {0: product.k, 4: int(product.operands)}) for rows in xe.DPAS_ROWS]
    return calling(calls)
