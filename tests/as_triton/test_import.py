"""`import triton` with mltriton in its place: names, errors, what child processes see. Each test in a fresh process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = str(Path(__file__).parents[2] / "src")


def python(*arguments: str, ok: bool = True, seconds: int = 240, **environment: str) -> str:
    """What a fresh Python prints, on standard output and after it on standard error."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "MLIR_", "MLTRITON_"))}
    if "MLTRITON_CACHE_DIR" in os.environ and "TRITON_CACHE_DIR" not in environment:
        kept["MLTRITON_CACHE_DIR"] = os.environ["MLTRITON_CACHE_DIR"]
    done = subprocess.run(
        [sys.executable, *arguments],
        env=kept | {"PYTHONPATH": SOURCES} | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert (done.returncode == 0) is ok, done.stdout + done.stderr
    return done.stdout + done.stderr


ADD = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

x, y = np.random.default_rng(0).random((2, 1000), np.float32)
out = np.zeros_like(x)
add[(triton.cdiv(1000, 256),)](x, y, out, 1000, BLOCK=256)
assert (out == x + y).all()
print("added")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(f"{ADD}\nimport sys\nprint(__name__, sys.argv[1:], sys.path[0])\n")
    return path


# Names of upstream, as libraries import them.
IMPORTS = """
from triton import AsyncCompileMode, CompilationError, Config, FutureKernel, InterpreterError, KernelInterface
from triton import MockTensor, OutOfResources, TensorWrapper, TritonError, autotune, cdiv, compile, heuristics, jit
from triton import constexpr_function, knobs, must_use_result, next_power_of_2, reinterpret, set_allocator
from triton._utils import find_paths_if, get_iterable_path, set_iterable_path, validate_block_shape
from triton.backends import BaseBackend, backends
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import ASTSource, CompiledKernel, IRSource, make_backend
from triton.compiler.code_generator import CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from triton.compiler.compiler import ASTSource, make_backend, triton_key
from triton.compiler.errors import CompilationError
from triton.language.core import CONSTEXPR_0, _unwrap_if_constexpr, base_value, builtin, constexpr_type, dtype, view
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice
from triton.language.extra.libdevice import rsqrt
from triton.language.math import exp2
from triton.language.standard import _log2, max, sum
from triton.runtime import Autotuner, Heuristics, JITFunction, TensorWrapper, driver, reinterpret
from triton.runtime._allocation import set_allocator
from triton.runtime.autotuner import Autotuner, Config, Heuristics, OutOfResources, autotune
from triton.runtime.cache import _base32, knobs, triton_key
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import ConstexprFunction, JITFunction, KernelInterface, mangle_type, native_specialize_impl
from triton.testing import Benchmark, assert_close, do_bench, perf_report
from triton.tools.tensor_descriptor import TensorDescriptor
import triton.language.extra.libdevice, triton.runtime.jit, triton.compiler.compiler, mltriton.runtime.jit
assert triton.language is mltriton.language
assert isinstance(mltriton.runtime.jit.HOOKS, list) and type(mltriton.runtime.jit).__name__ == "module"
assert triton.runtime.driver.active.get_current_target().backend == "cpu"
assert tuple(map(int, triton.__version__.split("."))) >= (3, 6)
"""


def test_names_of_upstream_are_there() -> None:
    python("-W", "error", "-c", f"import mltriton.as_triton\n{IMPORTS}")


def test_importing_loads_little() -> None:
    program = "import mltriton, sys; before = set(sys.modules); import mltriton.as_triton, triton"
    loaded = set(python("-c", f"{program}; print(*set(sys.modules) - before)").split())
    assert {name for name in loaded if name.startswith("mltriton")} == {
        "mltriton.as_triton",
        "mltriton.as_triton.modules",
        "mltriton.as_triton.names",
    }
    assert len(loaded) <= 8, sorted(loaded)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("import triton._C.nothing", "there is no triton._C.nothing: mltriton stands in for triton .*compiled part"),
        ("import triton.profiler.language", "there is no triton.profiler.language: .*scopes are the host.s"),
        ("import triton.language.extra.tlx", "there is no triton.language.extra.tlx: .*particular GPUs"),
        ("import triton.nothing", "there is no triton.nothing: mltriton stands in for triton"),
        ("import triton; triton.autotunee", r"there is no triton.autotunee: .*did you mean autotune\?"),
        ("from triton.runtime.jit import JITFunktion", r"ImportError: there is no .*did you mean JITFunction\?"),
        ("from triton.language import tma_load", "ImportError: there is no triton.language.tma_load: mltriton stands"),
        ("from triton.language.extra.libdevice import sinn", r"ImportError: .*did you mean sin\?"),
        ("from triton import nothing", "ImportError: there is no triton.nothing: mltriton stands in"),
        ("import triton.language as tl; tl.softplus", "AttributeError: there is no triton.language.softplus: mltriton"),
    ],
)
def test_a_missing_name_says_who_stands_in(statement: str, says: str) -> None:
    printed = python("-c", f"import mltriton.as_triton; {statement}", ok=False)
    assert re.search(says, printed), printed


def test_missing_names_may_be_probed() -> None:
    program = "import triton, triton.language as tl; print(hasattr(tl, 'nothing'), getattr(triton, 'nothing', 3))"
    assert python("-c", f"import mltriton.as_triton; {program}") == "False 3\n"


def test_the_real_one_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("__version__ = '3.9.0'\n")
    printed = python("-c", "import triton, mltriton.as_triton", ok=False, PYTHONPATH=f"{SOURCES}{os.pathsep}{tmp_path}")
    assert "ImportOrderError: the real triton is imported already" in printed
    assert "found triton 3.9.0 from" in printed


def test_processes_started_later_see_it(script: Path) -> None:
    program = (
        f"import mltriton.as_triton, subprocess, sys; subprocess.run([sys.executable, {str(script)!r}], check=True)"
    )
    assert python("-c", program).startswith("added\n")


def test_a_script_runs(script: Path) -> None:
    printed = python("-m", "mltriton.as_triton", str(script), "-x", "--explain")
    assert printed == f"added\n__main__ ['-x', '--explain'] {script.parent}\n"


def test_a_module_runs(script: Path) -> None:
    paths = f"{SOURCES}{os.pathsep}{script.parent}"
    printed = python("-m", "mltriton.as_triton", "--explain", "-m", "program", "a", PYTHONPATH=paths)
    assert printed.startswith("added\n__main__ ['a']")
    assert "mltriton stands in for triton 3" in printed


def test_the_command_runs_a_script(script: Path) -> None:
    printed = python("-m", "mltriton", "run", "--explain", str(script), "--flag", TRITON_DEBUG="1")
    assert printed.startswith("added\n__main__ ['--flag']")
    assert "TRITON_DEBUG=1" in printed


def test_the_command_runs_a_script_without_the_extra(script: Path) -> None:
    absent = "import sys; sys.modules['typer'] = None; from mltriton.cli import main; main()"
    assert python("-c", absent, "run", str(script), "run").startswith("added\n__main__ ['run']")


@pytest.mark.parametrize("full", ["0", "1"])
def test_a_mistake_shows_the_calls_of_the_program(script: Path, full: str) -> None:
    text = script.read_text().replace("tl.load(y + i", "tl.load(y + j")
    script.write_text(f"{text.partition('add[(')[0]}def run():\n    add[(4,)](x, y, out, 1000, BLOCK=256)\n\nrun()\n")
    printed = python("-m", "mltriton", "run", str(script), ok=False, MLTRITON_FULL_TRACEBACK=full)
    assert "NameNotFoundError: j is not defined\n" in printed
    calls = printed.partition("in run\n")[2].count("File ")
    assert calls > 10 if full == "1" else calls <= 2, printed


@pytest.mark.parametrize("arguments", [[], ["nothing.py"], ["-m"]])
def test_no_program(arguments: list[str]) -> None:
    printed = python("-m", "mltriton.as_triton", *arguments, ok=False)
    assert "usage: python -m mltriton.as_triton" in printed
    assert "Traceback" not in printed


def test_variables_of_upstream(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{ADD}\nprint(type(add).__name__)\n")
    run = ("-m", "mltriton.as_triton", str(program))
    variables = {"TRITON_CACHE_DIR": str(tmp_path / "here"), "MLIR_ENABLE_DUMP": "add", "TRITON_INTERPRET": "1"}
    printed = python(*run, **variables)
    assert printed.startswith("added\nInterpretedFunction\n")
    assert "// add: tt\n" in printed
    assert list((tmp_path / "here").iterdir())
    assert python(*run, MLIR_ENABLE_DUMP="other") == "added\nJITFunction\n"
    assert "TRITON_DEBUG='perhaps' is not a truth value" in python(*run, TRITON_DEBUG="perhaps", ok=False)


def test_upstreams_command_for_c_programs(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(ADD.partition("\nx, y")[0])
    command = ("-m", "mltriton.as_triton", "-m", "triton.tools.compile", str(tmp_path / "add.py"))
    options = ("-n", "add", "-s", "*fp32, *fp32, *fp32, i32, 128", "-o", str(tmp_path / "out" / "added"), "-g", "1,1,1")
    printed = python(*command, *options).split()
    assert [Path(file).name for file in printed] == ["added.h", "added.o"]
    assert "int added(uint32_t grid_x" in Path(printed[0]).read_text()
    assert "TargetError" in python(*command, *options, "-t", "generic", ok=False)
