"""mltriton as a backend of the real Triton. Fetches its wheel (300 MB), so that it runs only among the slow tests."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mltriton.runtime.parameters import IGNORED_OPTIONS

from .test_import import SOURCES, python

ROOT = Path(__file__).parents[2]
PROGRAMS = str(Path(__file__).with_name("plugin_programs.py"))


def entry_points() -> dict[str, str]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["triton.backends"]


def test_the_entry_point_names_a_package_of_ours() -> None:
    assert entry_points() == {"cpu": "mltriton.triton_plugin"}
    folder = ROOT / "src" / "mltriton" / "triton_plugin"
    assert {"__init__.py", "compiler.py", "driver.py"} <= {path.name for path in folder.iterdir()}


def test_options_of_other_gpus_are_options() -> None:
    """Upstream refuses a configuration with another keyword than parameters and options."""
    text = (ROOT / "src" / "mltriton" / "triton_plugin" / "compiler.py").read_text(encoding="utf-8")
    options = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and "Options" in node.name)
    named = {node.target.id for node in options.body if isinstance(node, ast.AnnAssign)}
    at_launches = {"stream", "device", "cluster_dims", "launch_cluster"}
    assert not IGNORED_OPTIONS - named - at_launches


@pytest.fixture(scope="module")
def real_triton(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folders with the wheel, and with what an installation of mltriton says of its entry point."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("triton")
    version = os.environ.get("TRITON_VERSION", "3.9.0")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, f"triton=={version}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"triton {version} cannot be fetched here: {done.stderr.strip().splitlines()[-1]}")
    said = folder / "mltriton_here-0.dist-info"
    said.mkdir()
    (said / "METADATA").write_text("Metadata-Version: 2.1\nName: mltriton-here\nVersion: 0\n")
    lines = [f"{name} = {value}" for name, value in entry_points().items()]
    (said / "entry_points.txt").write_text("\n".join(["[triton.backends]", *lines, ""]))
    return os.pathsep.join([SOURCES, str(folder)])


# The dialect of upstream 3.9, without what programs for GPUs alone make: approx_divf, grid_dependency_wait and
# grid_dependency_launch_dependents (tests/compiler/test_text.py has these).
OPERATIONS = [
    "addptr",
    "assert",
    "atomic_cas",
    "atomic_load",
    "atomic_poll",
    "atomic_rmw",
    "atomic_store",
    "bitcast",
    "broadcast",
    "call",
    "cat",
    "clampf",
    "descriptor_gather",
    "descriptor_load",
    "descriptor_reduce",
    "descriptor_scatter",
    "descriptor_store",
    "dot",
    "dot_scaled",
    "elementwise_inline_asm",
    "expand_dims",
    "extern_elementwise",
    "fp_to_fp",
    "func",
    "gather",
    "get_num_programs",
    "get_program_id",
    "histogram",
    "int_to_ptr",
    "join",
    "load",
    "make_range",
    "make_tensor_descriptor",
    "map_elementwise",
    "map_elementwise.return",
    "mulhiui",
    "precise_divf",
    "precise_sqrt",
    "print",
    "ptr_to_int",
    "reduce",
    "reduce.return",
    "reshape",
    "return",
    "scan",
    "scan.return",
    "splat",
    "split",
    "store",
    "trans",
    "unsplat",
]
SINCE_3_9 = {"atomic_load", "atomic_poll", "atomic_store"}


@pytest.mark.slow
def test_programs_run(real_triton: str, tmp_path: Path) -> None:
    folders = {"TRITON_CACHE_DIR": str(tmp_path / "theirs"), "MLTRITON_CACHE_DIR": str(tmp_path / "ours")}
    for _ in range(2):  # Compiled, then from the caches.
        printed = python("-W", "ignore", PROGRAMS, PYTHONPATH=real_triton, **folders).splitlines()
        (seen, backend) = [line for line in printed if not line.endswith(": right")]
        assert backend == "cpu", printed
        missing = {f"tt.{name}" for name in OPERATIONS} - set(seen.split())
        assert missing <= {f"tt.{name}" for name in SINCE_3_9}
        assert not missing or os.environ.get("TRITON_VERSION", "3.9.0") != "3.9.0"


@pytest.mark.slow
def test_another_backend_may_be_asked_for(real_triton: str) -> None:
    program = "from triton.backends import backends; print(backends['cpu'].driver.is_active())"
    assert python("-c", program, PYTHONPATH=real_triton, TRITON_DEFAULT_BACKEND="cpu") == "True\n"
    assert python("-c", program, PYTHONPATH=real_triton, TRITON_DEFAULT_BACKEND="nvidia") == "False\n"
    assert python("-c", program, PYTHONPATH=real_triton) == "True\n"


@pytest.mark.slow
def test_mltriton_does_not_stand_in_for_it(real_triton: str) -> None:
    printed = python("-c", "import triton, mltriton.as_triton", ok=False, PYTHONPATH=real_triton)
    assert "ImportOrderError: the real triton is imported already" in printed
