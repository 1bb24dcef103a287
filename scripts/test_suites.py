"""Run a library's own tests, as published, with mltriton in triton's place: on the GPU that torch sees, or the CPU.

`python scripts/test_suites.py [--into FOLDER] [-k TEXT] [--every N] [--more] [--workers N]` unpacks Liger-Kernel's
source distribution into FOLDER and runs its tests, each file in a process of its own:
`python -m mltriton.as_triton [--as-cuda] -m pytest FILE`. Prints a line for each file and the sums; what pytest said is
in FOLDER/liger_suite.log, the outcome of each test in FOLDER/liger_suite.outcomes. Of a file that takes too long those
tests count that ended. Needs the network, torch, transformers and pytest (with pytest-asyncio), and hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent / "libraries"))
from outcomes import read_outcomes
from sources import fetch_sources

PACKAGE = "liger-kernel==0.8.5"
FOLDERS = ("transformers", "chunked_loss", "triton", "ops", "megatron", "backends")  # cute*: other compilers' kernels
AS_CUDA = ("ops", "test_dyt.py", "test_mlp.py", "test_tvd.py")  # for CUDA alone
OUTCOMES = ("passed", "skipped", "xfailed", "failed", "error", "unfinished")
OPTIONS = ("-q", "-o", "log_cli=false", "--disable-warnings", "-p", "no:cacheprovider", "-p", "outcomes")


def run(folder: Path, file: Path, given: argparse.Namespace) -> Counter[str]:
    """How many tests of a file had which outcome; `unfinished` where it took longer than it may."""
    as_cuda = {file.name, file.parent.name} & {*AS_CUDA} and not torch.cuda.is_available()
    command = [sys.executable, "-m", "mltriton.as_triton", *["--as-cuda"] * bool(as_cuda), "-m", "pytest", *OPTIONS]
    outcomes = folder.with_suffix(".outcomes")
    known = read_outcomes(outcomes)
    environment = os.environ | {
        "TRITON_PRINT_AUTOTUNING": "0",
        "SUITE_OUTCOMES": str(outcomes),
        "SUITE_EVERY": str(given.every),
        "PYTHONPATH": os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")]),
    }
    name = str(file.relative_to(folder))
    with folder.with_suffix(".log").open("a") as log:
        try:
            done = subprocess.run(
                [*command, name],
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
    ended = read_outcomes(outcomes).items()
    return end + Counter(kind for test, kind in ended if test not in known and test.startswith(f"{name}::"))


def main() -> None:
    """Fetch and run; the exit status says whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".libraries"))
    parser.add_argument(
        "-k", action="append", default=[], help="only files whose path has one of these texts, in order"
    )
    parser.add_argument("--seconds", type=float, default=3600, help="that a file may take")
    parser.add_argument("--every", type=int, default=1, help="run one test in so many of each file")
    parser.add_argument("--more", action="store_true", help="only what earlier runs did not end")
    parser.add_argument("--workers", type=int, default=1, help="how many files at a time")
    given = parser.parse_args()
    folder = given.into.resolve() / "liger_suite"
    if not folder.joinpath("test").exists():
        fetch_sources(folder, PACKAGE)
    for suffix in (".outcomes", ".log"):
        if not given.more:
            folder.with_suffix(suffix).unlink(missing_ok=True)
    files = sorted(file for part in FOLDERS for file in folder.joinpath("test", part).glob("test_*.py"))
    chosen = dict.fromkeys(file for text in given.k or [""] for file in files if text in str(file))

    def told(file: Path) -> Counter[str]:
        started = time.perf_counter()
        counts = run(folder, file, given)
        print(f"{file.relative_to(folder)}: {_told(counts)}, {time.perf_counter() - started:.0f} s", flush=True)
        return counts

    with ThreadPoolExecutor(given.workers) as pool:
        sums = sum(pool.map(told, chosen), Counter[str]())
    print(_told(sums))
    sys.exit(any(sums[outcome] for outcome in ("failed", "error", "unfinished")))


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


if __name__ == "__main__":
    main()
