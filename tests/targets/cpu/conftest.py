"""Runs small LLVM functions made with the writer: compiled for an instruction set, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from mltriton.targets.cpu import features
from mltriton.targets.cpu.features import FEATURES, CpuFeatures
from mltriton.targets.llvm import toolchain
from mltriton.targets.llvm.toolchain import Machine
from mltriton.targets.llvm.types import PTR, VOID
from mltriton.targets.llvm.writer import Function, Module

_ORDER = ("sse", "avx2", "avx512", "avx512-vnni", "avx512-bf16")


def runnable() -> list[str]:
    """The instruction sets of the table that this machine can execute."""
    host = features.host()
    flags = {flag[1:] for flag in host.attributes.split(",") if flag.startswith("+")}
    wanted = {name: {flag[1:] for flag in FEATURES[name].attributes.split(",") if flag} for name in _ORDER}
    return [name for name in _ORDER if host.is_x86 and wanted[name] <= flags]


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

    def function(self, name: str, *types: Any) -> Callable[..., None]:
        return ctypes.CFUNCTYPE(None, *types)(self._engine.get_function_address(name))


def compile_kernel(isa: CpuFeatures, build: Callable[[Function, list[Any]], None], pointers: int) -> Program:
    """A program whose function `kernel` takes `pointers` pointers; `build(function, parameters)` writes its body."""
    module = Module(f'"target-cpu"="{isa.cpu}" "target-features"="{isa.attributes}" "prefer-vector-width"="512"')
    function = module.function("kernel", VOID, [(f"p{i}", PTR) for i in range(pointers)], linkage="")
    build(function, function.parameters)
    function.ret()
    return Program(module.text, isa)


def run_kernel(program: Program, *arrays: np.ndarray[Any, Any]) -> None:
    program.function("kernel", *[ctypes.c_void_p] * len(arrays))(*[array.ctypes.data for array in arrays])


@pytest.fixture(params=runnable())
def isa(request: pytest.FixtureRequest) -> CpuFeatures:
    return replace(FEATURES[request.param], triple=features.host().triple)
