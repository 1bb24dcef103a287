"""Operations that upstream's front end writes and that are made of others here.

Level: tt, only between reading a text and `frontend/upstream_operations.py`, which replaces them. They are read as
upstream prints them; no pass knows them.
"""

from __future__ import annotations

from mltriton.ir.definition import attribute, boolean, enum, integer, operand, optional, region, string, variadic
from mltriton.ir.operation import Operation


def _scaled(left: bool, right: bool) -> str:
    """The syntax of a scaled product whose operands have scales or not."""
    operands = [f"${name}{f' `scale` ${name}_scale' if has else ''}" for name, has in (("a", left), ("b", right))]
    kinds = [f"type(${name}){f' `,` type(${name}_scale)' if has else ''}" for name, has in (("a", left), ("b", right))]
    formats = "`lhs` `=` $a_format `rhs` `=` $b_format attr-dict"
    return f"{operands[0]} `,` {operands[1]} `,` $c {formats} `:` {kinds[0]} `*` {kinds[1]} `->` type($c, result)"


class Histogram(Operation, name="tt.histogram", pure=True):
    """`tt.histogram %x, %mask : tensor<64xi32> -> tensor<16xi32>`: how often each of 0 to 15 occurs."""

    syntax = "$source (`,` $mask^)? attr-dict `:` type($source) `->` type(result)"
    source = operand()
    mask = optional()


class ExternElementwise(Operation, name="tt.extern_elementwise", pure=True):
    """`tt.extern_elementwise %x {symbol = "__nv_tanhf", ...} : (tensor<64xf32>) -> tensor<64xf32>`: of a library."""

    syntax = "$sources attr-dict `:` functional-type($sources, results)"
    sources = variadic()
    symbol = string()
    libname = string("")
    libpath = string("")
    is_pure = boolean(text="pure")


class ElementwiseInlineAsm(Operation, name="tt.elementwise_inline_asm", writes=True):
    """`tt.elementwise_inline_asm "..." {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : ...`."""

    syntax = "$asm_string attr-dict ($sources^ `:` type($sources))? `->` type(results)"
    sources = variadic()
    asm_string = string()
    constraints = string()
    packed = integer(1, text="packed_element")
    is_pure = boolean(text="pure")


class MapElementwise(Operation, name="tt.map_elementwise"):
    """`"tt.map_elementwise"(%x, %y) <{pack = 1 : i32}> ({function}) : (...) -> ...`: a function of scalars."""

    region_ends = ("tt.map_elementwise.return",)
    sources = variadic()
    pack = integer(1)
    body = region()


class MapElementwiseReturn(Operation, name="tt.map_elementwise.return", terminator=True):
    """`tt.map_elementwise.return %x : f32`: the results for an element."""

    syntax = "attr-dict ($values^ `:` type($values))?"
    values = variadic()


class DotScaled(Operation, name="tt.dot_scaled", pure=True):
    """`tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e2m1 {...} : ...`."""

    syntax = _scaled(True, True)
    old_syntax = (_scaled(True, False), _scaled(False, True), _scaled(False, False))
    a = operand()
    b = operand()
    c = operand()
    a_scale = optional()
    b_scale = optional()
    a_format = enum("scale_format", text="a_elem_type")
    b_format = enum("scale_format", text="b_elem_type")


class AtomicLoad(Operation, name="tt.atomic_load", reads=True, writes=True):
    """`tt.atomic_load acquire, gpu, %ptr, %mask : (!tt.ptr<f32>, i1) -> f32`."""

    syntax = "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, results)"
    sem = enum("sem", "acquire")
    scope = enum("scope", "gpu")
    ptr = operand()
    mask = optional()


class AtomicStore(Operation, name="tt.atomic_store", reads=True, writes=True):
    """`tt.atomic_store release, gpu, %ptr, %value, %mask : !tt.ptr<f32>`."""

    syntax = "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)"
    sem = enum("sem", "release")
    scope = enum("scope", "gpu")
    ptr = operand()
    value = operand()
    mask = optional()


class AtomicPoll(Operation, name="tt.atomic_poll", reads=True, writes=True):
    """`tt.atomic_poll acquire, gpu, %ptr, %expected : !tt.ptr<i32>, i32 -> i1`: waits for a value."""

    syntax = (
        "$sem `,` $scope `,` $ptr `,` $expected (`,` $timeout^)? attr-dict `:` type($ptr) `,` type($expected) `->` "
        "type(result)"
    )
    sem = enum("sem", "acquire")
    scope = enum("scope", "gpu")
    ptr = operand()
    expected = operand()
    timeout = optional()


class ApproxDivF(Operation, name="tt.approx_divf", pure=True):
    """`tt.approx_divf %x, %y : tensor<64xf32>`: a quotient that may be off by some."""

    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs, result)"
    lhs = operand()
    rhs = operand()


class DescriptorGather(Operation, name="tt.descriptor_gather", reads=True):
    """`tt.descriptor_gather %d[%rows, %column] : (...) -> tensor<8x16xf32>`."""

    syntax = "$desc `[` $rows `,` $column `]` attr-dict `:` functional-type(operands, results)"
    desc = operand()
    rows = operand()
    column = operand()


class DescriptorScatter(Operation, name="tt.descriptor_scatter", writes=True):
    """`tt.descriptor_scatter %d[%rows, %column], %x : ...`."""

    syntax = (
        "$desc `[` $rows `,` $column `]` `,` $source attr-dict `:` type($desc) `,` type($rows) `,` type($column) `,` "
        "type($source)"
    )
    desc = operand()
    rows = operand()
    column = operand()
    source = operand()


class Poison(Operation, name="ub.poison", pure=True):
    """`ub.poison : tensor<64xf32>`: any value."""

    syntax = "attr-dict `:` type(result)"
    value = attribute()


class WorkgroupBarrier(Operation, name="ttg.barrier", reads=True, writes=True):
    """`ttg.barrier all`: `tl.debug_barrier`."""

    syntax = "`all` attr-dict"


class GridDependencyWait(Operation, name="tt.grid_dependency_wait", writes=True):
    """`tt.grid_dependency_wait`: of launches that overlap."""

    syntax = "attr-dict"


class GridDependencyLaunch(Operation, name="tt.grid_dependency_launch_dependents", writes=True):
    """`tt.grid_dependency_launch_dependents`: of launches that overlap."""

    syntax = "attr-dict"


NAMES: dict[str, type[Operation]] = {
    item.name: item
    for item in list(vars().values())
    if isinstance(item, type) and issubclass(item, Operation) and item is not Operation
}
