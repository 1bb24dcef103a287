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


class Histogram(Operation):
    """`tt.histogram %x, %mask : tensor<64xi32> -> tensor<16xi32>`: how often each of 0 to 15 occurs."""

    name = "tt.histogram"
    syntax = "$source (`,` $mask^)? attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()
    mask = optional()


class ExternElementwise(Operation):
    """`tt.extern_elementwise %x {symbol = "__nv_tanhf", ...} : (tensor<64xf32>) -> tensor<64xf32>`: of a library."""

    name = "tt.extern_elementwise"
    syntax = "$sources attr-dict `:` functional-type($sources, results)"
    pure = True
    sources = variadic()
    symbol = string()
    libname = string("")
    libpath = string("")
    is_pure = boolean(text="pure")


class ElementwiseInlineAsm(Operation):
    """`tt.elementwise_inline_asm "..." {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : ...`."""

    name = "tt.elementwise_inline_asm"
    syntax = "$asm_string attr-dict ($sources^ `:` type($sources))? `->` type(results)"
    writes = True
    sources = variadic()
    asm_string = string()
    constraints = string()
    packed = integer(1, text="packed_element")
    is_pure = boolean(text="pure")


class MapElementwise(Operation):
    """`"tt.map_elementwise"(%x, %y) <{pack = 1 : i32}> ({function}) : (...) -> ...`: a function of scalars."""

    name = "tt.map_elementwise"
    region_ends = ("tt.map_elementwise.return",)
    sources = variadic()
    pack = integer(1)
    body = region()


class MapElementwiseReturn(Operation):
    """`tt.map_elementwise.return %x : f32`: the results for an element."""

    name = "tt.map_elementwise.return"
    syntax = "attr-dict ($values^ `:` type($values))?"
    terminator = True
    values = variadic()


class DotScaled(Operation):
    """`tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e2m1 {...} : ...`."""

    name = "tt.dot_scaled"
    syntax = _scaled(True, True)
    old_syntax = (_scaled(True, False), _scaled(False, True), _scaled(False, False))
    pure = True
    a = operand()
    b = operand()
    c = operand()
    a_scale = optional()
    b_scale = optional()
    a_format = enum("scale_format", text="a_elem_type")
    b_format = enum("scale_format", text="b_elem_type")


class AtomicLoad(Operation):
    """`tt.atomic_load acquire, gpu, %ptr, %mask : (!tt.ptr<f32>, i1) -> f32`."""

    name = "tt.atomic_load"
    syntax = "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, results)"
    reads = True
    writes = True
    sem = enum("sem", "acquire")
    scope = enum("scope", "gpu")
    ptr = operand()
    mask = optional()


class AtomicStore(Operation):
    """`tt.atomic_store release, gpu, %ptr, %value, %mask : !tt.ptr<f32>`."""

    name = "tt.atomic_store"
    syntax = "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)"
    reads = True
    writes = True
    sem = enum("sem", "release")
    scope = enum("scope", "gpu")
    ptr = operand()
    value = operand()
    mask = optional()


class AtomicPoll(Operation):
    """`tt.atomic_poll acquire, gpu, %ptr, %expected : !tt.ptr<i32>, i32 -> i1`: waits for a value."""

    name = "tt.atomic_poll"
    syntax = (
        "$sem `,` $scope `,` $ptr `,` $expected (`,` $timeout^)? attr-dict `:` type($ptr) `,` type($expected) `->` "
        "type(result)"
    )
    reads = True
    writes = True
    sem = enum("sem", "acquire")
    scope = enum("scope", "gpu")
    ptr = operand()
    expected = operand()
    timeout = optional()


class ApproxDivF(Operation):
    """`tt.approx_divf %x, %y : tensor<64xf32>`: a quotient that may be off by some."""

    name = "tt.approx_divf"
    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs, result)"
    pure = True
    lhs = operand()
    rhs = operand()


class DescriptorGather(Operation):
    """`tt.descriptor_gather %d[%rows, %column] : (...) -> tensor<8x16xf32>`."""

    name = "tt.descriptor_gather"
    syntax = "$desc `[` $rows `,` $column `]` attr-dict `:` functional-type(operands, results)"
    reads = True
    desc = operand()
    rows = operand()
    column = operand()


class DescriptorScatter(Operation):
    """`tt.descriptor_scatter %d[%rows, %column], %x : ...`."""

    name = "tt.descriptor_scatter"
    syntax = (
        "$desc `[` $rows `,` $column `]` `,` $source attr-dict `:` type($desc) `,` type($rows) `,` type($column) `,` "
        "type($source)"
    )
    writes = True
    desc = operand()
    rows = operand()
    column = operand()
    source = operand()


class DescriptorReduce(Operation):
    """`tt.descriptor_reduce add, %d[%i, %j], %x : ...`."""

    name = "tt.descriptor_reduce"
    syntax = "$kind `,` $desc `[` $indices `]` `,` $source attr-dict `:` type($desc) `,` type($source)"
    writes = True
    kind = enum("descriptor_reduce")
    desc = operand()
    indices = variadic()
    source = operand()


class Poison(Operation):
    """`ub.poison : tensor<64xf32>`: any value."""

    name = "ub.poison"
    syntax = "attr-dict `:` type(result)"
    pure = True
    value = attribute()


class WorkgroupBarrier(Operation):
    """`ttg.barrier all`: `tl.debug_barrier`."""

    name = "ttg.barrier"
    syntax = "`all` attr-dict"
    reads = True
    writes = True


class GridDependencyWait(Operation):
    """`tt.grid_dependency_wait`: of launches that overlap."""

    name = "tt.grid_dependency_wait"
    syntax = "attr-dict"
    writes = True


class GridDependencyLaunch(Operation):
    """`tt.grid_dependency_launch_dependents`: of launches that overlap."""

    name = "tt.grid_dependency_launch_dependents"
    syntax = "attr-dict"
    writes = True


NAMES: dict[str, type[Operation]] = {
    item.name: item
    for item in list(vars().values())
    if isinstance(item, type) and issubclass(item, Operation) and item is not Operation
}
