"""The wheel `mltriton-as-triton`, built and imported in an environment of its own. Needs the network to build."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

import mltriton

from .test_import import ADD, SOURCES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "wheels" / "as_triton"


def test_its_version_is_ours() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    assert project["version"] == mltriton.__version__
    assert project["dependencies"] == [f"mltriton>={mltriton.__version__}"]


def test_its_module_is_there() -> None:
    included = tomllib.loads((FOLDER / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert all((FOLDER / path).exists() for path in included["force-include"])


@pytest.mark.slow
def test_a_program_imports_it(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(tmp_path), str(FOLDER)],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        pytest.skip(f"the wheel cannot be built here: {built.stderr.strip().splitlines()[-1]}")
    (wheel,) = tmp_path.glob("mltriton_as_triton-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    (site / "sources.pth").write_text(f"{SOURCES}\n{sysconfig.get_paths()['purelib']}\n")  # mltriton, and what it needs
    program = tmp_path / "program.py"
    program.write_text(f"{ADD}\nimport triton.language.extra.libdevice\nprint(type(add).__module__, triton.__file__)")
    done = subprocess.run([python, "-W", "error", program], capture_output=True, text=True)
    assert done.stdout.startswith("added\nmltriton.runtime.jit "), done.stderr
