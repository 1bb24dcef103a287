"""Run a library's own tests, as published, with mltriton in triton's place: on the GPU that torch sees, or the CPU.

`python scripts/test_suites.py [--into FOLDER] [-k TEXT] [--every N] [--workers N] [--together]` unpacks Liger-Kernel's
source distribution into FOLDER and runs its tests a file at a time, each in a process of its own:
`python -m mltriton.as_triton [--as-cuda] -m pytest FILE`. Prints a line for each file and the sums; what pytest said is
in FOLDER/liger_suite.log, the outcome of each test in FOLDER/liger_suite.outcomes. Of a file that takes too long those
tests count that ended. `--every N` runs one test in N, `--workers N` several at a time (pytest-xdist), `--together` all
files in one pytest, `--more` what earlier runs did not end. Needs the network, torch, transformers and pytest (with
pytest-asyncio), and hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent / "libraries"))
from outcomes import read_outcomes
from sources import fetch_sources

PACKAGE = "liger-kernel==0.8.5"
FOLDERS = ("transformers", "chunked_loss", "triton", "ops", "megatron", "backends")  # cute*: other compilers' kernels
AS_CUDA = ("ops", "test_dyt.py", "test_mlp.py")  # for CUDA alone
OUTCOMES = ("passed", "skipped", "xfailed", "failed", "error", "unfinished")
OPTIONS = ("-q", "-o", "log_cli=false", "--disable-warnings", "-p", "no:cacheprovider", "-p", "outcomes")


def run(folder: Path, files: Sequence[Path], given: argparse.Namespace) -> Counter[str]:
    """How many tests of some files had which outcome; `unfinished` where they took longer than they may."""
    as_cuda = {files[0].name, files[0].parent.name} & {*AS_CUDA} and not torch.cuda.is_available()
    command = [sys.executable, "-m", "mltriton.as_triton", *["--as-cuda"] * bool(as_cuda), "-m", "pytest", *OPTIONS]
    command += ["-n", str(given.workers)] * bool(given.workers)
    outcomes = folder.with_suffix(".outcomes")
    known = read_outcomes(outcomes)
    here = str(Path(__file__).resolve().parent / "libraries")
    environment = os.environ | {
        "TRITON_PRINT_AUTOTUNING": "0",
        "SUITE_OUTCOMES": str(outcomes),
        "SUITE_EVERY": str(given.every),
        "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
    }
    with folder.with_suffix(".log").open("a") as log:
        try:
            done = subprocess.run(
                [*command, *(str(file.relative_to(folder)) for file in files)],
                cwd=folder,
                env=environment,
                timeout=given.seconds,
                check=False,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            end = Counter(error=1) if done.returncode not in (0, 1, 5) else Counter[str]()
        except subprocess.TimeoutExpired:
            end = Counter(unfinished=1)
    return end + Counter(kind for test, kind in read_outcomes(outcomes).items() if test not in known)


def main() -> None:
    """Fetch and run; the exit status says whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".libraries"))
    parser.add_argument("-k", default="", help="only files whose path has this text")
    parser.add_argument("--seconds", type=float, default=3600, help="that a file may take")
    parser.add_argument("--every", type=int, default=1, help="run one test in so many of each file")
    parser.add_argument("--workers", type=int, default=0, help="of pytest-xdist")
    parser.add_argument("--more", action="store_true", help="only what earlier runs did not end")
    parser.add_argument("--together", action="store_true", help="all files in one pytest")
    given = parser.parse_args()
    folder = given.into.resolve() / "liger_suite"
    if not folder.joinpath("test").exists():
        fetch_sources(folder, PACKAGE)
    for suffix in (".outcomes", ".log"):
        if not given.more:
            folder.with_suffix(suffix).unlink(missing_ok=True)
    sums: Counter[str] = Counter()
    files = sorted(file for part in FOLDERS for file in folder.joinpath("test", part).glob("test_*.py"))
    files = [file for file in files if given.k in str(file)]
    for group in [files] if given.together else [[file] for file in files]:
        started = time.perf_counter()
        counts = run(folder, group, given)
        sums += counts
        took = time.perf_counter() - started
        name = group[0].relative_to(folder) if len(group) == 1 else f"{len(group)} files"
        print(f"{name}: {_told(counts)}, {took:.0f} s", flush=True)
    print(_told(sums))
    sys.exit(any(sums[outcome] for outcome in ("failed", "error", "unfinished")))


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


if __name__ == "__main__":
    main()
