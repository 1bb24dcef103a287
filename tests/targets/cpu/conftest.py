"""Runs small LLVM functions made with the writer: compiled for an instruction set, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from mltriton import executor
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.parser import parse_module
from mltriton.targets.cpu import features
from mltriton.targets.cpu.features import FEATURES, CpuFeatures
from mltriton.targets.cpu.llvm.dot import DotShape, call_dot
from mltriton.targets.cpu.llvm.emit.kernel import emit_kernel
from mltriton.targets.llvm import toolchain
from mltriton.targets.llvm.toolchain import Machine
from mltriton.targets.llvm.types import I1, I64, PTR, VOID, constant
from mltriton.targets.llvm.writer import Function, Module
from processors import runnable


class Program:
    """Code loaded into this process for as long as the object lives."""

    def __init__(self, text: str, isa: CpuFeatures) -> None:
        image = toolchain.compile_object(text, Machine(features.host().triple, isa.cpu, isa.attributes))
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._module = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(self._module, machine)
        self._image = llvm.ObjectFileRef.from_data(image)
        self._engine.add_object_file(self._image)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        return self._engine.get_global_value_address(name)

    def function(self, name: str, *types: Any) -> Callable[..., None]:
        return ctypes.CFUNCTYPE(None, *types)(self._engine.get_function_address(name))


def compile_kernel(isa: CpuFeatures, build: Callable[[Function, list[Any]], None], pointers: int) -> Program:
    """A program whose function `kernel` takes `pointers` pointers; `build(function, parameters)` writes its body."""
    module = Module(f'"target-cpu"="{isa.cpu}" "target-features"="{isa.attributes}" "prefer-vector-width"="512"')
    function = module.function("kernel", VOID, [(f"p{i}", PTR) for i in range(pointers)], linkage="")
    build(function, function.parameters)
    function.ret()
    return Program(module.text, isa)


def write_dot(function: Function, isa: CpuFeatures, shape: DotShape, a_stride: int, k: int) -> None:
    """c = a @ b of a function's three pointers; rows of `b` and `c` are next to each other."""
    a, b, c = function.parameters
    strides = [constant(I64, stride) for stride in (a_stride, shape.columns, shape.columns)]
    call_dot(function, isa, shape, a, strides[0], b, strides[1], c, strides[2], constant(I64, k), constant(I1, 0))


def text_of_dot(isa: CpuFeatures, shape: DotShape) -> str:
    """The module of a program that calls a dot function."""
    module = Module("")
    write_dot(module.function("kernel", VOID, [(name, PTR) for name in "abc"], linkage=""), isa, shape, 4096, 48)
    return module.text


def run_kernel(program: Program, *arrays: np.ndarray[Any, Any]) -> None:
    program.function("kernel", *[ctypes.c_void_p] * len(arrays))(*[array.ctypes.data for array in arrays])


def _isa(name: str) -> CpuFeatures:
    return replace(FEATURES[name], triple=features.host().triple)


@pytest.fixture(params=runnable()[:2] + runnable()[2:][-1:])
def isa(request: pytest.FixtureRequest) -> CpuFeatures:
    """One instruction set for each register width."""
    return _isa(request.param)


@pytest.fixture(params=runnable())
def every_isa(request: pytest.FixtureRequest) -> CpuFeatures:
    """Every instruction set that this machine can execute."""
    return _isa(request.param)


def run_module(text: str, isa: CpuFeatures, args: Sequence[Any], grid: tuple[int, int, int] = (1, 1, 1)) -> Program:
    """Run the function of a module at the intrinsic level on this CPU; arrays in `args` are changed in place."""
    module = parse_module(text, "kernel.mlir")
    program = Program(emit_kernel(module, isa), isa)
    slots = np.zeros((len(args) + 3) * 8, np.uint8)
    for i, value in enumerate([*args, *map(np.int64, grid)]):
        data = np.uint64(value.ctypes.data) if isinstance(value, np.ndarray) else np.asarray(value)
        slots[i * 8 : i * 8 + data.itemsize] = np.frombuffer(data.tobytes(), np.uint8)
    scratch_bytes = module.attributes.get("tile.scratch_bytes")
    size = scratch_bytes.value if isinstance(scratch_bytes, IntegerAttr) else 0
    buffer = np.full(size + 64, 0xA5, np.uint8)
    scratch = buffer.ctypes.data + -buffer.ctypes.data % 64
    kernel = program.function("kernel", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    count = int(np.prod(grid))
    middle = count // 3  # two ranges, so that a range may begin anywhere
    kernel(slots.ctypes.data, 0, middle, scratch)
    kernel(slots.ctypes.data, middle, count, scratch)
    return program


def run_both(text: str, isa: CpuFeatures, args: Sequence[Any], grid: tuple[int, int, int] = (1, 1, 1)) -> list[Any]:
    """Run a module on this CPU and in the reference executor; gives (CPU's array, executor's array) pairs."""
    copies = [[value.copy() if isinstance(value, np.ndarray) else value for value in args] for _ in range(2)]
    run_module(text, isa, copies[0], grid)
    executor.run(parse_module(text, "kernel.mlir"), copies[1], grid)
    return [(mine, theirs) for mine, theirs in zip(*copies, strict=True) if isinstance(mine, np.ndarray)]
