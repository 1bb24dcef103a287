"""What a process loads: for a first compilation on the CPU, for a kernel from the cache, for `import mltriton`.

Sets, not times: a room (a folder) that is loaded without need costs every user a part of each start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mltriton
from mltriton.targets.target import FOREIGN_SOURCES

PATH = Path(mltriton.__file__).parent

PROGRAM = """
import sys
import numpy as np
import mltriton, mltriton.language as tl

@mltriton.jit
def add(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, i < n) + 1, i < n)

x = np.arange(500, dtype=np.float32)
o = np.zeros_like(x)
add[(4,)](x, o, 500, B=128)
assert (o == x + 1).all()
known = sorted(sys.modules)
import json
print(json.dumps(known))
"""

# Folders, with those whose only loaded file says what is in them.
CACHED = {"compiler", "frontend", "ir", "language", "runtime", "runtime.native", "targets", "targets.cpu"}
FIRST = CACHED | {
    "runtime.native.translation",
    *(
        "analysis",
        "dialects",
        "dialects.arith",
        "dialects.tile",
        "dialects.tt",
        "layouts",
        "passes",
        "passes.any",
        "passes.tt",
    ),
    *("passes.ttg", "passes.warp", "passes.intrinsic", "passes.intrinsic.tile_loops"),
    *("targets.llvm", "targets.llvm.emit", "targets.cpu.llvm", "targets.cpu.llvm.emit"),
}
# What only some programs need.
SOMETIMES = {
    *("analysis.warp_uniformity", "analysis.affine.motion", "passes.warp.widening", "passes.warp.lower_cross_warp"),
    *("passes.tt.convert_dot_operands", "passes.warp.serialize_warps", "passes.tt.split_uniform_increments"),
    *("targets.cpu.llvm.dot", "targets.cpu.llvm.indirect_dot", "targets.cpu.llvm.matrix_tiles"),
    *("targets.llvm.math", "targets.llvm.inline_assembly", "targets.llvm.isolation", "passes.reproducer"),
    *("ir.printer", "ir.syntax", "layouts.text", "layouts.conversions", "layouts.shared", "passes.warp.lane_exchanges"),
    *(f"targets.cpu.llvm.emit.{module}" for module in ("assembly", "atomics", "debug", "reduce")),
}
ELSEWHERE = {
    "argparse",
    "subprocess",
    "concurrent.futures",
    "difflib",
    "logging",
    "multiprocessing",
    "asyncio",
    "torch",
    "_hashlib",  # OpenSSL
}
PATHS = {"pathlib", "tempfile", "urllib.parse", "ipaddress"}  # urllib is pathlib's
SLOW = PATHS | {"json", "signal"}
COMPILER = {"llvmlite", "mltriton.passes", "mltriton.dialects", "mltriton.ir.operation", "mltriton.compiler.build"}


def loaded(program: str, cache: Path) -> set[str]:
    """The modules of a fresh process that ran a program. Numpy's own loading of others is not counted."""
    env = os.environ | {"MLTRITON_CACHE_DIR": str(cache)}
    cache.mkdir(exist_ok=True)
    path = cache / "program.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def rooms(modules: set[str]) -> set[str]:
    ours = {name.removeprefix("mltriton.") for name in modules if name.startswith("mltriton.")}
    return {name.rpartition(".")[0] for name in ours if "." in name} | {name for name in ours if is_folder(name)}


def is_folder(name: str) -> bool:
    return (PATH / name.replace(".", "/")).is_dir()


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[set[str], set[str]]:
    """What the first run loads, and the second."""
    cache = tmp_path_factory.mktemp("cache")
    return loaded(PROGRAM, cache), loaded(PROGRAM, cache)


def test_a_first_compilation_on_the_cpu(runs):
    first, _ = runs
    assert rooms(first) == FIRST
    sometimes = {f"mltriton.{name}" for name in SOMETIMES}
    assert all((PATH / f"{name.replace('.', '/')}.py").exists() for name in SOMETIMES)
    assert not sometimes & first
    assert not ELSEWHERE & first


def test_foreign_sources_are_not_loaded(runs):
    """What the cache key of the CPU's kernels leaves out has no part in them."""
    foreign = {f"mltriton.targets.{package}" for package in FOREIGN_SOURCES["cpu"]}
    assert foreign and all(PATH.joinpath("targets", name.rpartition(".")[2]).is_dir() for name in foreign)
    assert not [name for name in runs[0] if name.startswith(tuple(foreign))]


def test_a_kernel_from_the_cache(runs):
    _, second = runs
    assert rooms(second) == CACHED
    assert not (COMPILER | ELSEWHERE) & second


def test_slow_modules_are_not_loaded_to_compile_nor_for_a_kernel_from_the_cache(runs, tmp_path):
    of_numpy = loaded("import sys, numpy\nknown = sorted(sys.modules)\nimport json\nprint(json.dumps(known))", tmp_path)
    compiling = PROGRAM.replace("add[(4,)](x, o, 500, B=128)", "add.warmup(x, o, 500, grid=(4,), B=128)")
    compiled = loaded(compiling.replace("assert (o == x + 1).all()", ""), tmp_path)
    assert "mltriton.passes.manager" in compiled
    assert not (PATHS | {"mltriton.dialects.registry"}) & compiled - of_numpy
    assert not SLOW & runs[1] - of_numpy


def test_import_alone(tmp_path):
    program = "import json, sys\nimport mltriton, mltriton.language\nprint(json.dumps(sorted(sys.modules)))"
    assert rooms(loaded(program, tmp_path)) == {"language"}
