"""Random valid modules for property tests: values, constants, control flow, names and locations of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from mltriton.dialects import arith, scf, tt
from mltriton.dialects import math as m
from mltriton.ir.attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    DictAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
)
from mltriton.ir.builder import Builder
from mltriton.ir.constants import wrap
from mltriton.ir.floats import bits_to_float
from mltriton.ir.location import UNKNOWN, CallSiteLoc, FileLoc, Location, NameLoc
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.types import (
    FLOATS,
    I1,
    I32,
    INDEX,
    FloatType,
    FunctionType,
    IntegerType,
    PointerType,
    TensorType,
    Type,
    like,
)

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

INTEGERS = [IntegerType(width) for width in (1, 8, 16, 32, 64)]
SHAPES = [(1,), (4,), (2, 3), (1, 4, 2)]
NAMES = (
    st.none()
    | st.sampled_from(["x", "acc", "x_0", "0", "arg0", "c1_i32", "größe", "a b", "%", ""])
    | st.text("ab_$.-1", max_size=3)
)

elements = st.sampled_from([*INTEGERS, *FLOATS.values()])
types = elements | st.builds(TensorType, st.sampled_from(SHAPES), elements)

locations: st.SearchStrategy[Location] = st.recursive(
    st.just(UNKNOWN)
    | st.builds(FileLoc, st.sampled_from(["k.py", 'odd "name"\\.py', "ü.py"]), st.integers(1, 99), st.integers(0, 9)),
    lambda inner: st.builds(CallSiteLoc, inner, inner) | st.builds(NameLoc, st.text(max_size=3), inner),
    max_leaves=3,
)

attributes = st.recursive(
    st.just(UnitAttr())
    | st.builds(StringAttr, st.text(max_size=5))
    | st.builds(IntegerAttr, st.integers(-128, 127), st.just(I32))
    | st.builds(SymbolRefAttr, st.text(min_size=1, max_size=3))
    | st.builds(lambda values: DenseArrayAttr(tuple(values), I32), st.lists(st.integers(-5, 5), max_size=3))
    | st.builds(TypeAttr, types),
    lambda inner: (
        st.builds(lambda items: ArrayAttr(tuple(items)), st.lists(inner, max_size=2))
        | st.builds(
            lambda items: DictAttr(tuple(sorted(items.items()))), st.dictionaries(st.text("a.-"), inner, max_size=2)
        )
    ),
    max_leaves=4,
)


def numbers(element: Type) -> st.SearchStrategy[int | float]:
    """Numbers of a scalar type, every special float included."""
    if isinstance(element, FloatType):
        bits = st.integers(0, (1 << element.width) - 1)
        return bits.map(lambda pattern: bits_to_float(pattern, element))
    return st.integers(-(1 << 63), (1 << 63) - 1).map(lambda value: wrap(value, element))


@st.composite
def constants(draw: Any, type: Type) -> Attribute:
    """A constant of a type; tensors are splats or not."""
    if isinstance(type, TensorType):
        count = draw(st.sampled_from([1, type.size]))
        return DenseAttr(tuple(draw(numbers(type.element)) for _ in range(count)), type)
    return (
        FloatAttr(draw(numbers(type)), type) if isinstance(type, FloatType) else IntegerAttr(draw(numbers(type)), type)
    )


@st.composite
def modules(draw: Any) -> Module:
    """A module with one or two functions."""
    module = Module.empty()
    for name, value in draw(st.dictionaries(st.text("ab.-", min_size=1, max_size=4), attributes, max_size=2)).items():
        module.attributes[name] = value
    for index in range(draw(st.integers(1, 2))):
        module.body.block.append(_Function(draw).function(f"k{index}"))
    return module


class _Function:
    """Fills one function with random operations."""

    def __init__(self, draw: Draw[Any]) -> None:
        self.draw = draw
        self.builder = Builder()
        self.visible: list[Value] = []

    def function(self, name: str) -> tt.Func:
        inputs = (PointerType(FLOATS["f32"]), *self.draw(st.lists(types, max_size=2)))
        body = Block(inputs)
        function = tt.Func(
            regions=[Region([body])],
            attributes={
                "sym_name": StringAttr(name),
                "function_type": tt.Func.function_type.encode(FunctionType(inputs, ())),
            },
        )
        self.visible = list(body.arguments)
        for argument in body.arguments:
            argument.hint = self.draw(NAMES)
        with self.builder.inside(body):
            self.fill(3)
            self.builder.create(tt.Return, [], result_types=[])
        return function

    def fill(self, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 4))):
            self.builder.loc = self.draw(locations)
            kinds = [self.constant, self.binary, self.cast, self.unary, self.compare, self.reduce]
            if depth:
                kinds += [lambda: self.loop(depth), lambda: self.branch(depth)]
            self.draw(st.sampled_from(kinds))()

    def define(self, value: Value) -> Value:
        value.hint = self.draw(NAMES)
        self.visible.append(value)
        return value

    def pick(self, wanted: Callable[[Type], bool]) -> Value:
        """A visible value whose type is wanted, or a new constant."""
        known = [value for value in self.visible if wanted(value.type)]
        if known and self.draw(st.booleans()):
            return self.draw(st.sampled_from(known))
        type = self.draw(types.filter(wanted))
        return self.define(self.builder.emit(arith.Constant, value=self.draw(constants(type))))

    def of(self, type: Type) -> Value:
        return self.pick_exact(type)

    def pick_exact(self, type: Type) -> Value:
        known = [value for value in self.visible if value.type is type]
        if known and self.draw(st.booleans()):
            return self.draw(st.sampled_from(known))
        return self.define(self.builder.emit(arith.Constant, value=self.draw(constants(type))))

    def constant(self) -> None:
        type = self.draw(types)
        self.define(self.builder.emit(arith.Constant, value=self.draw(constants(type))))

    def binary(self) -> None:
        left = self.pick(_is_integer)
        cls = self.draw(st.sampled_from([arith.AddI, arith.MulI, arith.XOrI, arith.MaxUI]))
        self.define(self.builder.emit(cls, left, self.of(left.type)))

    def unary(self) -> None:
        self.define(self.builder.emit(self.draw(st.sampled_from([m.Exp, arith.NegF, m.Floor])), self.pick(_is_float)))

    def cast(self) -> None:
        source = self.pick(_is_integer)
        target = like(source.type, self.draw(st.sampled_from(list(FLOATS.values()))))
        self.define(self.builder.emit(arith.SIToFP, source, result_types=[target]))

    def compare(self) -> None:
        left = self.pick(_is_float)
        right = self.of(left.type)
        condition = self.define(
            self.builder.emit(arith.CmpF, left, right, predicate=self.draw(st.sampled_from(["olt", "une"])))
        )
        self.define(self.builder.emit(arith.Select, condition, left, right))

    def reduce(self) -> None:
        source = self.pick(lambda type: isinstance(type, TensorType) and _is_float(type))
        assert isinstance(source.type, TensorType)
        element = source.type.element
        body = Block([element, element])
        with self.builder.inside(body):
            total = self.builder.emit(arith.AddF, *body.arguments)
            self.builder.create(tt.ReduceReturn, [total], result_types=[])
        axis = self.draw(st.integers(0, source.type.rank - 1))
        self.define(self.builder.create(tt.Reduce, [source], regions=[Region([body])], axis=axis).result)

    def loop(self, depth: int) -> None:
        counter = self.draw(st.sampled_from([I32, INDEX]))
        bound = self.builder.emit(arith.Constant, value=IntegerAttr(1, counter))
        inits = [self.pick(_is_integer) for _ in range(self.draw(st.integers(0, 2)))]
        body = Block([counter, *(init.type for init in inits)])
        outer = list(self.visible)
        for argument in body.arguments:
            argument.hint = self.draw(NAMES)
        self.visible += body.arguments[1:]
        with self.builder.inside(body):
            self.fill(depth - 1)
            self.builder.create(scf.Yield, [self.of(init.type) for init in inits], result_types=[])
        self.visible = outer
        types = [init.type for init in inits]
        stages = self.draw(st.none() | st.integers(1, 3))
        op = self.builder.create(
            scf.For, bound, bound, bound, inits, result_types=types, regions=[Region([body])], num_stages=stages
        )
        for result in op.results:
            self.define(result)

    def branch(self, depth: int) -> None:
        condition = self.of(I1)
        results = self.draw(st.lists(types, max_size=2))
        regions = [self.arm(results, depth), self.arm(results, depth)]
        if not results and self.draw(st.booleans()):
            regions[1] = Region([])
        op = self.builder.create(scf.If, condition, result_types=results, regions=regions)
        for result in op.results:
            self.define(result)

    def arm(self, results: list[Type], depth: int) -> Region:
        outer = list(self.visible)
        block = Block()
        with self.builder.inside(block):
            self.fill(depth - 1)
            self.builder.create(scf.Yield, [self.of(type) for type in results], result_types=[])
        self.visible = outer
        return Region([block])


def _is_integer(type: Type) -> bool:
    element = type.element if isinstance(type, TensorType) else type
    return isinstance(element, IntegerType)


def _is_float(type: Type) -> bool:
    element = type.element if isinstance(type, TensorType) else type
    return isinstance(element, FloatType)
