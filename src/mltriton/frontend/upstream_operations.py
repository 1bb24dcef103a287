"""What upstream's front end writes and is made of other operations here, replaced by these.

Level: tt. Takes a module that was read from a text; leaves none of `dialects/upstream.py`. Each rule calls the function
of the language that stands for the operation, on the operation's operands. Guarantees: what there is no such function
for is a `TargetError` at the operation's location in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from mltriton.dialects import arith, tt, upstream
from mltriton.errors import SourceLocation, TargetError
from mltriton.frontend.calls import inline
from mltriton.frontend.frame import Unit
from mltriton.ir.attributes import ArrayAttr, DictAttr, IntegerAttr, TypeAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, FloatType, FunctionType, IntegerType, PointerType, TensorDescType, TensorType, Type
from mltriton.language import types
from mltriton.language.arithmetic import truediv
from mltriton.language.assembly import inline_asm_elementwise
from mltriton.language.atomic_accesses import atomic_load, atomic_poll, atomic_store
from mltriton.language.building import building, builtin, current
from mltriton.language.creation import full
from mltriton.language.descriptors import make_tensor_descriptor
from mltriton.language.external import by_symbol
from mltriton.language.hints import debug_barrier
from mltriton.language.mapping import apart, mapped_one_by_one, together
from mltriton.language.scaled_matmul import dot_scaled
from mltriton.language.standard import histogram
from mltriton.language.tensor import tensor, tensor_descriptor

Rule = Callable[[Any], object]
_FLOATS = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}


def without_upstream_operations(module: Module) -> Module:
    """The module with operations of ours only."""
    for function in module.body.block.ops:
        if isinstance(function, tt.Func) and function.body.blocks:
            for op in [op for op in function.walk() if type(op) in RULES]:
                _replace(op, function)
    return module


def _replace(op: Operation, function: tt.Func) -> None:
    unit = Unit(Builder(function.body.block))
    location = op.loc.innermost

    def inliner(fn: Any, arguments: Sequence[Any]) -> Any:
        return inline(unit, fn, arguments, {}, unit.builder.loc)

    try:
        with building(unit.builder, inliner):
            unit.builder.before(op)
            made = RULES[type(op)](op)
    except TargetError as error:
        raise error.at(
            SourceLocation(location.file, location.line, location.column) if location is not None else None
        ) from None
    values: Sequence[Any] = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else [made] if op.results else []
    op.replace_by([value.handle for value in values])


def with_pointers_for_descriptors(module: Module) -> Module:
    """The module with host descriptors, as upstream passes them, made in the kernel: a parameter `!tt.tensordesc`,
    followed by its sizes and strides, becomes a pointer.
    """
    for function in module.body.block.ops:
        if isinstance(function, tt.Func) and function.body.blocks:
            _make_descriptors(function)
    return module


def _make_descriptors(function: tt.Func) -> None:
    block = function.body.block
    parameters = block.arguments
    promises = function.promises
    for position, parameter in enumerate(parameters):
        kind = parameter.type
        if not isinstance(kind, TensorDescType):
            continue
        rank = kind.block.rank
        shape, strides = (parameters[position + 1 + i * rank :][:rank] for i in (0, 1))
        builder = Builder(block).before(block.ops[0])
        one = builder.emit(arith.Constant, value=IntegerAttr(1, strides[-1].type), result_types=[strides[-1].type])
        made = builder.create(tt.MakeTensorDesc, parameter, list(shape), [*strides[:-1], one], result_types=[kind])
        parameter.replace_by(made.result)
        made.set_operand(0, parameter)
        parameter.type = PointerType(kind.block.element)
        promises[position] = DictAttr((("tt.divisibility", IntegerAttr(16, I32)),))
    function.attributes["arg_attrs"] = ArrayAttr(tuple(promises))
    function.attributes["function_type"] = TypeAttr(FunctionType(tuple(p.type for p in parameters), ()))


def dtype_of(kind: Type) -> types.dtype:
    """The language's type of an IR type; integers are signed."""
    if isinstance(kind, TensorType):
        return types.block_type(dtype_of(kind.element), kind.shape)
    if isinstance(kind, PointerType):
        return types.pointer_type(dtype_of(kind.pointee))
    if isinstance(kind, IntegerType):
        return types.by_name(f"i{kind.width}")
    assert isinstance(kind, FloatType)
    return types.by_name(_FLOATS[kind.name])


def _value(value: Value | None) -> Any:
    return None if value is None else tensor(value, dtype_of(value.type))


def _values(values: Sequence[Value]) -> list[Any]:
    return [_value(value) for value in values]


def _histogram(op: upstream.Histogram) -> object:
    bins = cast(TensorType, op.results[0].type).shape[0]
    return histogram(_value(op.source), bins, _value(op.mask))


def _extern(op: upstream.ExternElementwise) -> object:
    result = by_symbol(op.symbol)(*_values(op.sources))
    wanted = dtype_of(op.results[0].type).scalar
    return result if result.dtype == wanted else result.to(wanted)


def _assembly(op: upstream.ElementwiseInlineAsm) -> object:
    kinds = [dtype_of(result.type).scalar for result in op.results]
    return inline_asm_elementwise(op.asm_string, op.constraints, _values(op.sources), kinds, op.is_pure, op.packed)


def _mapped(op: upstream.MapElementwise) -> object:
    parts = [part for block in _values(op.sources) for part in apart(block, op.pack)]
    *body, end = op.body.block.ops
    inside = dict.fromkeys(op.walk())
    used = dict.fromkeys(value.owner for inner in inside for value in inner.operands)
    constants = [owner for owner in used if isinstance(owner, arith.Constant) and owner not in inside]

    @builtin
    def function(*elements: tensor) -> tuple[tensor, ...]:
        handles = (element.handle for element in elements)
        values: dict[Value, Value] = dict(zip(op.body.block.arguments, handles, strict=True))
        for inner in (*constants, *body):
            current().insert(inner.clone(values))
        return tuple(tensor(values.get(value, value), dtype_of(value.type)) for value in end.operands)

    found = mapped_one_by_one(function, parts, [dtype_of(value.type) for value in end.operands])
    shape = _value(op.sources[0]).type.shape
    return tuple(together(found[at : at + op.pack], shape) for at in range(0, len(found), op.pack))


def _dot_scaled(op: upstream.DotScaled) -> object:
    a, b = (_value(op.a), _value(op.a_scale), op.a_format), (_value(op.b), _value(op.b_scale), op.b_format)
    return dot_scaled(*a, *b, acc=_value(op.c))


def _descriptor(value: Value) -> tensor_descriptor:
    """The language's descriptor of one that the kernel makes."""
    made = value.defining_op
    if not isinstance(made, tt.MakeTensorDesc):
        raise TargetError("rows are gathered through descriptors that the kernel makes", found="another descriptor")
    block = cast(Any, made.result.type).block
    strides = [*_values(made.strides)[:-1], 1]
    return make_tensor_descriptor(_value(made.base), _values(made.shape), strides, block.shape)


def _gather(op: upstream.DescriptorGather) -> object:
    return _descriptor(op.desc).gather(_value(op.rows), _value(op.column))


def _scatter(op: upstream.DescriptorScatter) -> object:
    return _descriptor(op.desc).scatter(_value(op.source), _value(op.rows), _value(op.column))


def _poison(op: upstream.Poison) -> object:
    kind = dtype_of(op.results[0].type)
    return full(kind.shape, 0, kind.scalar)


def _wait_for_launches(_op: Operation) -> object:
    from mltriton.language.extra.cuda import gdc_wait  # Few programs need it.

    return gdc_wait()


def _start_launches(_op: Operation) -> object:
    from mltriton.language.extra.cuda import gdc_launch_dependents  # Few programs need it.

    return gdc_launch_dependents()


RULES: Mapping[type[Operation], Rule] = {
    upstream.Histogram: _histogram,
    upstream.ExternElementwise: _extern,
    upstream.ElementwiseInlineAsm: _assembly,
    upstream.MapElementwise: _mapped,
    upstream.DotScaled: _dot_scaled,
    upstream.AtomicLoad: lambda op: atomic_load(_value(op.ptr), _value(op.mask), op.sem),
    upstream.AtomicStore: lambda op: atomic_store(_value(op.ptr), _value(op.value), _value(op.mask), op.sem),
    upstream.AtomicPoll: lambda op: atomic_poll(_value(op.ptr), _value(op.expected), op.sem),
    upstream.ApproxDivF: lambda op: truediv(_value(op.lhs), _value(op.rhs)),
    upstream.DescriptorGather: _gather,
    upstream.DescriptorScatter: _scatter,
    upstream.Poison: _poison,
    upstream.WorkgroupBarrier: lambda op: debug_barrier(),
    upstream.GridDependencyWait: _wait_for_launches,
    upstream.GridDependencyLaunch: _start_launches,
}
