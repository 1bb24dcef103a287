"""A whole release of flash-linear-attention, downloaded: every call site is migrated, the kernels are proven."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/migrate_corpus.py"
VERSION = "0.4.2"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("release")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"fla-core=={VERSION}", "-d"]
    result = subprocess.run([*command, str(directory)], capture_output=True, text=True, timeout=300, check=False)
    wheels = list(directory.glob("*.whl"))
    if not wheels:
        pytest.skip(f"fla-core {VERSION} cannot be downloaded: {result.stderr.strip()[-300:]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extractall(directory / "unpacked")
    return directory / "unpacked"


def run(release: Path, *options: str, timeout: int) -> str:
    command = [sys.executable, str(SCRIPT), VERSION, "--release", str(release), *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_a_whole_release_is_migrated(release: Path) -> None:
    output = run(release, timeout=600)
    assert "3733 call sites" in output
    assert ", 0 left." in output


@pytest.mark.slow
def test_a_whole_release_is_proven(release: Path) -> None:
    output = run(release, "--verify", timeout=3600)
    ((proven, kernels, wrong),) = re.findall(r"(\d+) of (\d+) kernels proven, \d+ partly, (\d+) differ", output)
    assert int(kernels) >= 205
    assert int(proven) >= 0.9 * int(kernels)
    assert int(wrong) == 0


def test_a_release_that_cannot_be_downloaded_is_told(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "0.0.0+none"]
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )
    assert result.returncode == 2
    assert "cannot download fla-core 0.0.0+none" in result.stderr
