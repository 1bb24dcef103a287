"""Ways to launch, as fixtures: in machine code or in Python, with our workers or with torch's OpenMP library."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mltriton.runtime.native import launcher, library, portable
from mltriton.runtime.native.pool import pool


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the user's cache out of the tests, and let subprocesses share ours."""
    directory = tmp_path_factory.mktemp("cache")
    previous = os.environ.get("MLTRITON_CACHE_DIR")
    os.environ["MLTRITON_CACHE_DIR"] = str(directory)
    yield directory
    if previous is None:
        del os.environ["MLTRITON_CACHE_DIR"]
    else:
        os.environ["MLTRITON_CACHE_DIR"] = previous


@pytest.fixture(params=["native", "portable"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with the launcher in machine code and with the one in Python."""
    if request.param == "native" and library.machine() is None:
        pytest.skip("no native launcher for this machine")
    monkeypatch.setenv("MLTRITON_LAUNCHER", request.param)
    return request.param


@pytest.fixture(params=["workers", "openmp", "portable"])
def team(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the test with our own workers, with torch's OpenMP library and with Python threads; four threads each."""
    monkeypatch.setenv("MLTRITON_LAUNCHER", "portable" if request.param == "portable" else "native")
    if request.param == "openmp":
        pytest.importorskip("torch")
    if request.param == "portable":
        portable.pool().set_num_threads(4)
        yield request.param
        portable.pool().set_num_threads(None)
        return
    if library.machine() is None:
        pytest.skip("no native launcher for this machine")
    pool().set_num_threads(4)
    pool().prepare()
    parallel = pool().library.pointer("gomp_parallel")
    address = parallel.value
    if request.param == "workers":
        parallel.value = None
    assert pool().kind == request.param
    yield request.param
    parallel.value = address
    pool().set_num_threads(None)


@pytest.fixture
def run_script(cache_directory: Path) -> Callable[..., str]:
    """Return a function that runs Python code in a fresh process and returns what it printed; it must exit cleanly."""

    def run(code: str, seconds: float = 120, **environment: str) -> str:
        paths = [str(Path(launcher.__file__).parents[3]), str(Path(__file__).parent)]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment
        done = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
            env=env,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.stderr == ""
        return done.stdout

    return run
