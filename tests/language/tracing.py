"""Builds small kernels from Python functions on tensors, verifies them, and runs them in the reference executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mltriton.language as tl
from mltriton.dialects import tt
from mltriton.executor import run
from mltriton.executor.values import decode, memory_dtype
from mltriton.ir.attributes import StringAttr, TypeAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region
from mltriton.ir.types import FunctionType, element_type
from mltriton.ir.verifier import verify
from mltriton.language.building import building

DTYPES = {
    "bool": tl.int1,
    "int8": tl.int8,
    "int16": tl.int16,
    "int32": tl.int32,
    "int64": tl.int64,
    "uint8": tl.uint8,
    "uint16": tl.uint16,
    "uint32": tl.uint32,
    "uint64": tl.uint64,
    "float16": tl.float16,
    "float32": tl.float32,
    "float64": tl.float64,
}


def call_directly(fn: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Inline a plain Python function by calling it on the values."""
    return fn(*arguments)


class Trace:
    """A kernel under construction: `parameter` adds a parameter, `finish` gives the verified module."""

    def __init__(self) -> None:
        self.block = Block()
        self.builder = Builder(self.block)

    def parameter(self, type: tl.dtype) -> tl.tensor:
        return tl.tensor(self.block.add_argument(type.to_ir()), type)

    @property
    def ops(self) -> list[Operation]:
        return self.block.ops

    @property
    def names(self) -> list[str]:
        return [op.name for op in self.ops]

    def finish(self) -> Module:
        self.builder.create(tt.Return, [], result_types=[])
        inputs = tuple(argument.type for argument in self.block.arguments)
        attributes = {"sym_name": StringAttr("kernel"), "function_type": TypeAttr(FunctionType(inputs, ()))}
        module = Module.empty()
        module.attributes["mltriton.level"] = StringAttr("tt")
        module.body.block.append(tt.Func([], [], attributes, [Region([self.block])]))
        verify(module)
        return module


def traced(body: Callable[..., Any], *types: tl.dtype) -> Trace:
    """The verified kernel whose body is `body` called on parameters of `types`."""
    trace = Trace()
    with building(trace.builder, call_directly, debug=True, sanitize_overflow=False):
        body(*[trace.parameter(type) for type in types])
    trace.finish()
    return trace


def execute(
    body: Callable[..., Any], *arrays: Any, grid: Sequence[int] = (1,), types: Sequence[tl.dtype] | None = None
) -> None:
    """Run `body` on pointers to the arrays (and on Python ints as int32 scalars)."""
    trace = Trace()
    kinds = types or [tl.int32 if isinstance(a, int) else tl.pointer_type(DTYPES[a.dtype.name]) for a in arrays]
    with building(trace.builder, call_directly, debug=True, sanitize_overflow=False):
        body(*[trace.parameter(kind) for kind in kinds])
    run(trace.finish(), list(arrays), grid)


def whole(pointer: tl.tensor, shape: Sequence[int]) -> tl.tensor:
    """Pointers to every element of a row-major array."""
    size = int(np.prod(shape))
    return pointer + tl.reshape(tl.arange(0, size), tuple(shape)) if shape else pointer


def compute(body: Callable[..., Any], *arrays: Any, types: Sequence[tl.dtype] | None = None) -> Any:
    """The values that `body` gives on blocks (0D arrays: scalars) with the arrays' elements: one, or a tuple.

    `types` are the dtypes where numpy has none: the arrays then hold the bits.
    """
    trace = Trace()
    inputs = [np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array).reshape(()) for array in arrays]
    dtypes = types or [DTYPES[array.dtype.name] for array in inputs]
    with building(trace.builder, call_directly, debug=True, sanitize_overflow=False):
        pointers = [trace.parameter(tl.pointer_type(dtype)) for dtype in dtypes]
        blocks = [tl.load(whole(p, a.shape)) for p, a in zip(pointers, inputs, strict=True)]
        made = body(*blocks)
        results = [tl.to_tensor(item) for item in (made if isinstance(made, tuple) else (made,))]
        outputs: list[np.ndarray[Any, Any]] = []
        for result in results:
            pointer = trace.parameter(tl.pointer_type(result.dtype))
            outputs.append(np.zeros(result.type.shape, memory_dtype(element_type(result.type.to_ir()))))
            tl.store(whole(pointer, result.type.shape), result)
    run(trace.finish(), [*(array.reshape(-1) for array in inputs), *(out.reshape(-1) for out in outputs)], (1,))
    decoded = tuple(_read(out, result) for out, result in zip(outputs, results, strict=True))
    return decoded if len(decoded) > 1 else decoded[0]


def _read(out: np.ndarray[Any, Any], result: tl.tensor) -> np.ndarray[Any, Any]:
    values = decode(out, element_type(result.type.to_ir()))
    return values.view(f"u{values.itemsize}") if result.dtype.is_int_unsigned() and result.dtype != tl.int1 else values
