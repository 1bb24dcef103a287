"""What becomes of each operation: one line for a class.

Level: warp to intrinsic. An operation has a value at any index, computed where it is needed (`value`), something that
is done where it stands (`statement`), or both: a load is a value where it gives a block and is done where it gives a
scalar. What does something with blocks may be the `member` of a loop nest. Functions are named, as `module:function` of
this folder, and looked up when a program first needs them: simple kernels have neither loops nor dots. Classes without
a line are what they declare: an elementwise operation is evaluated element by element, one that rearranges elements by
those that it says it reads.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from mltriton.dialects import arith, gpu, math, scf, tile, tt, ttg, ttig
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType, block_of

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.members import Member

LOADS = (tt.Load, tt.DescriptorLoad, ttg.LocalLoad)
SHAPES = (tt.ExpandDims, tt.Broadcast, tt.Trans, ttg.ConvertLayout)
SCALARS = (tt.GetProgramId, tt.GetNumPrograms, gpu.SubgroupId, tt.Unsplat)
POINTERS = (tt.MakeTensorPtr, tt.MakeTensorDesc, ttg.MemDescSubview, ttg.MemDescTrans)
UPDATES = (tt.AtomicRMW, tt.AtomicCAS, tt.VolatileAsm)
REARRANGED = 4  # what it costs to find an element elsewhere


class How(NamedTuple):
    """One line. `cost`: of one element in vector operations, without its operands'; `on_demand`: a scalar or pointer
    that is computed where it is needed, by no rule of its own.
    """

    value: str = ""
    statement: str = ""
    member: str = ""
    cost: int | None = None
    on_demand: bool = False


OPERATIONS: dict[type[Operation], How] = {
    arith.Constant: How("rules:constant", cost=0),
    arith.Select: How("rules:select"),
    arith.ExtSI: How("rules:extension"),
    **dict.fromkeys((arith.DivSI, arith.DivUI, arith.RemSI, arith.RemUI), How("rules:division", cost=8)),
    **dict.fromkeys((arith.CeilDivSI, arith.FloorDivSI), How(cost=8)),
    **dict.fromkeys((arith.DivF, arith.RemF, math.Sqrt, math.Rsqrt, tt.PreciseSqrt, tt.PreciseDivF), How(cost=5)),
    **dict.fromkeys(math.TRANSCENDENTAL, How(cost=14)),
    tt.MakeRange: How("rules:make_range", cost=0),
    tt.Splat: How("rules:splat", cost=0),
    **dict.fromkeys(SHAPES, How(cost=0)),
    tt.Reshape: How("rules:reshape"),
    tt.Split: How("rules:split"),
    tt.Join: How("rules:join"),
    tt.Cat: How("rules:cat"),
    **dict.fromkeys((*SCALARS, *POINTERS), How(on_demand=True)),
    # Memory
    tt.Load: How("rules:load", "statements:load", cost=3),
    tt.DescriptorLoad: How("rules:load", "statements:nothing", cost=3),
    **dict.fromkeys((tt.Store, tt.DescriptorStore), How(statement="statements:store", member="members:StoreBlock")),
    **dict.fromkeys(UPDATES, How(statement="statements:join", member="members:Atomic")),
    ttig.Prefetch: How(statement="statements:prefetch", member="prefetching:member"),
    ttg.LocalAlloc: How(statement="shared:allocate"),
    ttg.LocalLoad: How("rules:shared_load", "statements:nothing", cost=3),
    ttg.LocalStore: How(statement="shared:store", member="shared:member"),
    tile.Fill: How(statement="statements:fill", member="members:fill_of"),
    tile.Pack: How(statement="dot_operands:pack_before", cost=0),
    # Loops of their own
    tt.Reduce: How(statement="statements:join", member="reductions:member"),
    tt.Scan: How(statement="scans:lower_scan"),
    tt.Dot: How(statement="dots:lower_dot"),
    # Control flow
    scf.For: How(statement="control_flow:lower_for"),
    scf.If: How(statement="control_flow:lower_if"),
    scf.While: How(statement="control_flow:lower_while"),
    gpu.Barrier: How(statement="statements:nothing"),
    # What users look at
    tt.Print: How(statement="statements:print_values"),
    tt.Assert: How(statement="statements:join", member="members:AssertBlock"),
    tt.Assume: How(statement="statements:assume"),
}
_NOTHING = How()


def is_virtual(op: Operation) -> bool:
    """Whether an operation's results are evaluated on demand."""
    if isinstance(op, LOADS):
        return isinstance(op.results[0].type, TensorType)
    how = OPERATIONS.get(op.__class__, _NOTHING)
    return op.pure and (op.elementwise or op.rearranges or how.on_demand or bool(how.value))


def cost_of(op: Operation) -> int:
    """What one element of a virtual operation costs, without its operands'."""
    cost = OPERATIONS.get(op.__class__, _NOTHING).cost
    return (REARRANGED if op.rearranges else 1) if cost is None else cost


@cache
def rule_of(cls: type[Operation]) -> Any:
    """How an element of an operation's result comes from its operands; None where that is not done on demand."""
    path = OPERATIONS.get(cls, _NOTHING).value
    if not path and cls.rearranges:
        path = "rules:indexed" if cls.encodings and cls.encodings.free else "rules:same_element"
    elif not path and cls.elementwise:
        path = "rules:elementwise"
    return _function(path) if path else None


@cache
def statement_of(cls: type[Operation]) -> Any:
    """What is done where an operation stands; None where that is nothing, or not known."""
    path = OPERATIONS.get(cls, _NOTHING).statement
    return _function(path) if path else None


@cache
def _member_rule(cls: type[Operation]) -> Any:
    path = OPERATIONS.get(cls, _NOTHING).member
    return _function(path) if path else None


def member_of(op: Operation) -> Member | None:
    """What does all of `op` in a nest; None for an operation on scalars, for what has loops of its own, and for what is
    computed where it is needed.
    """
    make = _member_rule(op.__class__)
    if make is None or not any(block_of(value.type) for value in (*op.operands, *op.results)):
        return None
    return make(op)


def _function(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)
