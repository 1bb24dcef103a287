"""Every program of tests of the language and of the tutorials becomes a cubin: `--compiled-for` of `on_target.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FEW = ["tests/language/test_matmul.py", "tests/language/test_atomics.py"]
ALL = ["tests/language", "tests/tutorials", "tests/warps/test_kernels.py", "tests/warps/test_language.py"]


def compile_all(tests: list[str], target: str, cache: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "--compiled-for", target]
    environment = os.environ | {"MLTRITON_CACHE_DIR": str(cache)}
    done = subprocess.run([*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_few(tmp_path: Path, needs_ptxas: None) -> None:
    compile_all(FEW, "cuda:90", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:89", "cuda:90"])
def test_all(target: str, warps: int, tmp_path: Path, needs_ptxas: None) -> None:
    compile_all(ALL, target, tmp_path, "--num-warps", str(warps))
