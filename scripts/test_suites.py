"""Run a library's own tests, as published, with mltriton in triton's place, on the CPU.

`python scripts/test_suites.py [--into FOLDER] [-k TEXT]` unpacks Liger-Kernel's source distribution into FOLDER and
runs its tests a file at a time, each in a process of its own:
`python -m mltriton.as_triton [--as-cuda] -m pytest FILE`. Prints a line for each file and the sums. Needs the network,
torch, transformers and pytest (with pytest-asyncio), and hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "libraries"))
from sources import fetch_sources

PACKAGE = "liger-kernel==0.8.5"
FOLDERS = ("transformers", "chunked_loss", "triton", "ops", "megatron", "backends")  # cute*: other compilers' kernels
AS_CUDA = ("ops", "test_dyt.py", "test_mlp.py")  # for CUDA alone
OUTCOMES = ("passed", "skipped", "xfailed", "failed", "error")


def run(folder: Path, file: Path, seconds: float) -> Counter[str]:
    """How many tests of a file had which outcome; `unfinished` where it took longer than it may."""
    switch = ["--as-cuda"] if {file.name, file.parent.name} & {*AS_CUDA} else []
    command = [sys.executable, "-m", "mltriton.as_triton", *switch, "-m", "pytest", "-q", "-o", "log_cli=false"]
    environment = os.environ | {"TRITON_PRINT_AUTOTUNING": "0"}
    try:
        done = subprocess.run(
            [*command, "--disable-warnings", "-p", "no:cacheprovider", str(file.relative_to(folder))],
            cwd=folder,
            env=environment,
            timeout=seconds,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return Counter(unfinished=1)
    counts = re.findall(rf"(\d+) ({'|'.join(OUTCOMES)})", done.stdout.rstrip().rpartition("\n")[2])
    return Counter({outcome: int(count) for count, outcome in counts}) or Counter(error=1)


def main() -> None:
    """Fetch and run; the exit status says whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".libraries"))
    parser.add_argument("-k", default="", help="only files whose path has this text")
    parser.add_argument("--seconds", type=float, default=3600, help="that a file may take")
    given = parser.parse_args()
    folder = given.into.resolve() / "liger_suite"
    if not folder.joinpath("test").exists():
        fetch_sources(folder, PACKAGE)
    sums: Counter[str] = Counter()
    for file in sorted(file for part in FOLDERS for file in folder.joinpath("test", part).glob("test_*.py")):
        if given.k in str(file):
            started = time.perf_counter()
            counts = run(folder, file, given.seconds)
            sums += counts
            took = time.perf_counter() - started
            print(f"{file.relative_to(folder)}: {_told(counts)}, {took:.0f} s", flush=True)
    print(_told(sums))
    sys.exit(any(sums[outcome] for outcome in ("failed", "error", "unfinished")))


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in (*OUTCOMES, "unfinished") if counts[outcome])


if __name__ == "__main__":
    main()
