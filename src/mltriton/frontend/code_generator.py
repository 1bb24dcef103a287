"""From a kernel's syntax tree to a module at the `tt` level.

Level: Python syntax tree -> `tt`. Takes a function written in the language and what is known of each parameter; gives a
module with one public `tt.func` whose parameters are those that come at launch. Guarantees: calls are inlined, every
operation has the user's line, the module verifies.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from mltriton.dialects import tt
from mltriton.errors import InternalError, SourceLocation, TritonError
from mltriton.frontend.calls import inline, uncallable
from mltriton.frontend.frame import Frame, Unit
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.promises import in_place
from mltriton.frontend.signature import Argument, Constant, Entry
from mltriton.frontend.values import wrap
from mltriton.ir.attributes import ArrayAttr, Attribute, DictAttr, IntegerAttr, StringAttr, TypeAttr
from mltriton.ir.builder import Builder
from mltriton.ir.location import Location
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Region
from mltriton.ir.promises import DIVISIBILITY
from mltriton.ir.types import I32, FunctionType, Type
from mltriton.language import types
from mltriton.language.building import Inliner, building, deferred
from mltriton.language.tensor import tensor


def generate(
    fn: LanguageFunction,
    entries: Mapping[str, Entry],
    *,
    target: str = "cpu",
    warps: int | None = None,
    debug: bool = False,
    sanitize_overflow: bool = True,
    threads: int = 1,
) -> Module:
    """The module of a kernel; `warps` is the number of warps of a program where it is written for warps.

    `entries` says for each parameter what it is (the parts of tuples and descriptors are entries of their own);
    `target` is the machine that `tl.target_info` speaks of, and `threads` of it run a program; with `debug` assertions
    are checked at run time, and with `sanitize_overflow` integers. Raises the `CompilationError` that fits the mistake,
    with its location in the user's file.
    """
    arguments = {name: entry for name, entry in entries.items() if isinstance(entry, Argument)}
    dtypes = {name: _dtype(entry) for name, entry in arguments.items()}
    ir_types = [_passed_as(dtype).to_ir() for dtype in dtypes.values()]
    block = Block(ir_types)
    unit = Unit(Builder(block))
    frame = Frame(unit, fn.source, fn.environment, None)
    unit.frames.append(frame)
    values = {name: wrap(entry.value) for name, entry in entries.items() if isinstance(entry, Constant)}
    for argument, (name, dtype) in zip(block.arguments, dtypes.items(), strict=True):
        argument.hint = name
        values[name] = tensor(argument, _passed_as(dtype))
    with building(unit.builder, _inliner(unit), target, warps, debug, sanitize_overflow, threads):
        frame.mark(frame.source.tree)
        values |= {name: values[name].to(dtype) for name, dtype in dtypes.items() if _passed_as(dtype) != dtype}
        for name in fn.signature.parameters:
            frame.scope.set(name, _assembled(name, values))
        try:
            _compile_body(frame)
        except (TritonError, RecursionError):
            raise
        except Exception as failure:
            from mltriton.tracebacks import raised_by_signal  # Only a failure needs it.

            if raised_by_signal(failure):
                raise
            message = f"the front end failed: {type(failure).__name__}: {failure}"
            raise InternalError(message, location=_place_of(unit.builder.loc)) from failure
        promised = in_place(deferred(), block)
        attributes = [
            _argument_attributes(entry, promised.get(argument, {}))
            for argument, entry in zip(block.arguments, arguments.values(), strict=True)
        ]
    module = Module.empty()
    module.attributes["mltriton.level"] = StringAttr("tt")
    module.body.block.append(_function(fn, frame, block, ir_types, attributes))
    return module


def _assembled(name: str, values: Mapping[str, Any]) -> Any:
    """A parameter's value; one in parts is a descriptor or a tuple (`runtime/parts.py` names them)."""
    if name in values:
        return values[name]
    parts = {other[len(name) + 1 :].split(".")[0] for other in values if other.startswith(f"{name}.")}
    if "base" in parts:
        from mltriton.language.descriptors import make_tensor_descriptor  # Few kernels take one.

        fields = ("base", "shape", "strides", "block_shape", "padding")
        return make_tensor_descriptor(*[_assembled(f"{name}.{field}", values) for field in fields])
    items = [_assembled(f"{name}.{part}", values) for part in sorted(parts - {"fields"}, key=int)]
    return _named_tuple(values[f"{name}.fields"].value)(*items) if "fields" in parts else tuple(items)


@cache
def _named_tuple(text: str) -> Callable[..., tuple[Any, ...]]:
    """The named tuple that `runtime/parts.py` describes so."""
    name, *fields = text.split()
    return namedtuple(name, fields)  # pyright: ignore[reportUntypedNamedTuple]


def _dtype(entry: Argument) -> types.dtype:
    element = types.by_name(entry.scalar)
    return types.pointer_type(element, const=entry.is_const) if entry.is_pointer else element


def _passed_as(dtype: types.dtype) -> types.dtype:
    """The type in which a launch passes a parameter: floats of less than 32 bits as fp32."""
    return types.float32 if dtype.is_floating() and not dtype.is_ptr() and dtype.bits < 32 else dtype


def _inliner(unit: Unit) -> Inliner:
    def call(fn: Any, arguments: Sequence[Any]) -> Any:
        if not isinstance(fn, LanguageFunction):
            raise uncallable(fn)
        return inline(unit, fn, arguments, {}, unit.builder.loc)

    return call


def _place_of(location: Location) -> SourceLocation | None:
    found = location.innermost
    return None if found is None else SourceLocation(found.file, found.line, found.column)


def _compile_body(frame: Frame) -> None:
    tree = frame.source.tree
    frame.execute(tree.body)
    frame.mark(tree)
    frame.builder.create(tt.Return, [], result_types=[])


def _function(
    fn: LanguageFunction, frame: Frame, block: Block, ir_types: list[Type], of_arguments: list[DictAttr]
) -> tt.Func:
    attributes: dict[str, Attribute] = {
        "sym_name": StringAttr(fn.__name__),
        "function_type": TypeAttr(FunctionType(tuple(ir_types), ())),
        "sym_visibility": StringAttr("public"),
        "arg_attrs": ArrayAttr(tuple(of_arguments)),
    }
    return tt.Func([], [], attributes, [Region([block])], frame.location(frame.source.tree))


def _argument_attributes(entry: Argument, promised: Mapping[str, tuple[int, ...]]) -> DictAttr:
    """What is known of a parameter: from the launch's arguments, and what the kernel promises of it."""
    known = {name: numbers[0] for name, numbers in promised.items()}
    known[DIVISIBILITY] = max(entry.divisibility, known.get(DIVISIBILITY, 1))
    return DictAttr(tuple((name, IntegerAttr(value, I32)) for name, value in known.items() if value > 1))
