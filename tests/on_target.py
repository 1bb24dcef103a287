"""`pytest tests/tutorials tests/language --target xe:pvc [--num-warps 1] [--codegen simd]`: the same tests elsewhere.

Launches of arrays in main memory that name no target run on the one that is given, and so do the programs that tests of
the language otherwise give the reference executor: with their layouts, passes and machine code.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mltriton import executor
from mltriton.compiler import build as building
from mltriton.compiler.job import Job
from mltriton.compiler.kernel import CompiledKernel
from mltriton.dialects import tt
from mltriton.errors import LaunchError, TritonError
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.ir.module import Module, level_of
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op
from mltriton.ir.types import I32, PointerType
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.runtime import jobs
from mltriton.runtime.slots import Slot
from mltriton.targets.target import Binary, Target, find_target

# What cannot be the same on targets whose names begin so, and why.
_DIFFERENT = {
    "xe": {
        "test_matmul.py::test_values": "the matrix engine does not take f64",
        "test_math.py::test_unary[exp2]": "f32 is the instruction's, which errs by up to 8 units in the last place",
    }
}
# What is not run there.
_MISSING = {
    "cuda": {
        "test_grouped_matmul_through_pointers_in_memory": "addresses in arrays are those of main memory",
    }
}
# What is not even compiled for them.
_FOREIGN = {"cuda": {"test_assembly.py": "the assembly is x86's"}}
_BITS = {"f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("mltriton")
    group.addoption("--target", help="where launches and programs of tests that name no target run")
    group.addoption("--num-warps", type=int, default=4, help="with --target: warps of programs that have no launch")
    group.addoption("--shard", help="with I/N: of all tests only each N-th from the I-th on, counted from 0")
    group.addoption("--emulated", action="store_true", help="with --target cuda:90: without a GPU, by the PTX emulator")
    group.addoption("--compiled-for", help="what tests launch on the CPU is compiled for this target as well")
    group.addoption("--codegen", help="with --target: the form of machine code of programs that have no launch")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Expect the failures that are known, and keep a share."""
    if shard := config.getoption("--shard"):
        number, of = map(int, shard.split("/"))
        kept = items[number::of]
        config.hook.pytest_deselected(items=[item for place, item in enumerate(items) if place % of != number])
        items[:] = kept
    family, other = (str(config.getoption(name)).partition(":")[0] for name in ("--target", "--compiled-for"))
    missing = _MISSING.get(family, {}) | _FOREIGN.get(family, {}) | _FOREIGN.get(other, {})
    for item in items:
        for name, reason in _DIFFERENT.get(family, {}).items():
            if item.nodeid.endswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
        for name, reason in missing.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Change where programs run."""
    other = session.config.getoption("--compiled-for")
    if other is not None:
        _compile_all_for(find_target(other), session.config.getoption("--num-warps"))
    name = session.config.getoption("--target")
    if name is None:
        return
    if session.config.getoption("--emulated"):
        from ptx_emulator.launch import install  # which lies beside this file only here

        install(pytest.MonkeyPatch())
    target, warps, codegen = find_target(name), *map(session.config.getoption, ("--num-warps", "--codegen"))
    assert callable(jobs._target_of)  # what launches ask, which this replaces
    jobs._target_of = lambda _: name
    execute = executor.run

    def run(module: Module, arguments: Sequence[Any], grid: Sequence[int], **options: Any) -> None:
        if level_of(module) == "tt":
            run_on(target, module, arguments, grid, warps, codegen)
        else:  # a test that looks at a target of its own
            execute(module, arguments, grid, **options)

    for item in list(sys.modules.values()):
        if vars(item).get("run") is execute and "tests" in (getattr(item, "__file__", None) or ""):
            item.run = run  # pyright: ignore[reportAttributeAccessIssue]


def _compile_all_for(target: Target, warps: int) -> None:
    """Compile for a target whatever is compiled for the CPU or given to the executor; both run as before."""
    build, execute = building.built, executor.run

    def built(job: Job, key: str) -> CompiledKernel:
        made = build(job, key)
        if job.target.name.startswith("cpu"):
            try:
                build(replace(job, target=target), key)
            except TritonError as error:
                pytest.fail(f"{job.name} does not compile for {target.name}: {error}")
        return made

    def run(module: Module, arguments: Sequence[Any], grid: Sequence[int], **options: Any) -> None:
        if level_of(module) == "tt":
            compiled_on(target, module, warps, None)
        execute(module, arguments, grid, **options)

    building.built = built
    for item in list(sys.modules.values()):
        if vars(item).get("run") is execute and "tests" in (getattr(item, "__file__", None) or ""):
            item.run = run  # pyright: ignore[reportAttributeAccessIssue]


def run_on(
    target: Target, module: Module, arguments: Sequence[Any], grid: Sequence[int], warps: int, codegen: str | None
) -> None:
    """Compile a program at level `tt`, which is left as it is, and launch it; again, as a launch of the runtime does,
    where its arrays cannot be described to an engine for copies.
    """
    try:
        _launch(target, module, arguments, grid, warps, codegen)
    except LaunchError as error:
        if "tensor_maps" not in str(error):
            raise
        again = parse_module(print_op(module))
        again.attributes = {**again.attributes, "ttg.tensor-maps": StringAttr("none")}
        _launch(target, again, arguments, grid, warps, codegen)


def _launch(
    target: Target, module: Module, arguments: Sequence[Any], grid: Sequence[int], warps: int, codegen: str | None
) -> None:
    binary, kinds, name = compiled_on(target, module, warps, codegen)
    slots = [_slot(argument, kind) for argument, kind in zip(arguments, kinds, strict=True)]
    target.load(binary, name).run((*grid, 1, 1)[:3], slots)


def compiled_on(target: Target, module: Module, warps: int, codegen: str | None) -> tuple[Binary, list[Any], str]:
    """The machine code of a program at level `tt`, which is left as it is; its parameters' types and its name."""
    module = parse_module(print_op(module))
    usual = {"ttg.num-warps": IntegerAttr(warps, I32), "ttg.num-stages": IntegerAttr(3, I32)}
    module.attributes = {**usual, **module.attributes, "ttg.target": StringAttr(target.name)}
    if codegen is not None:
        module.attributes["ttig.codegen"] = StringAttr(codegen)
    function = next(op for op in module.walk() if isinstance(op, tt.Func))
    kinds = [argument.type for argument in function.body.block.arguments]
    name = function.sym_name
    for pipeline in target.spec.pipeline:
        module = PassManager(parse_pipeline(pipeline), verify_each=False).run(module)
    return target.assemble(target.lower(module), module), kinds, name


def _slot(argument: Any, kind: Any) -> Slot:
    if isinstance(kind, PointerType):
        assert isinstance(argument, np.ndarray)
        return Slot("tensor", argument.ctypes.data, argument)
    if str(kind) in _BITS:
        number, bits = _BITS[str(kind)]
        return Slot(str(kind), struct.unpack(bits, struct.pack(number, argument))[0])
    return Slot(str(kind), int(argument) & (1 << kind.width) - 1)
