"""Run everything on this machine's NVIDIA GPU: the language, the library, random kernels, compute-sanitizer.

`python scripts/test_gpu.py [--seeds 5000] [--jobs N] [--only language,library,...]`, from the top of the tree. Tests of
the language and the tutorials are those of the CPU, run there by `--target cuda`. Work goes to as many processes as
there are processors, since compiling takes longer than running. Ends with 1 where something failed, and says so in a
line for each piece; without a GPU nothing runs, which is no failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=short"]
SUITES = {"language": ["tests/language", "tests/frontend/test_random_programs.py"], "tutorials": ["tests/tutorials"]}
SANITIZED = ["tests/gpu/test_library.py", "tests/gpu/test_memory_bound.py"]
# Of these, what racecheck is asked about, which takes a hundred times as long.
RACED = (
    "(transpose or entropy or gradients) and 72 and float32 or rope and 33 "
    "or test_paged_attention and float16-3-16 or test_softmax and shape0"
)
STYLES = ("chains", "control", "dots", "rows", "shapes")  # of random programs: threads of "memory" race on a GPU
PROGRAMS = 25  # a piece
SHOWN = 6000  # characters of a failing piece
NOTHING = "terminated before first instrumented API call"  # compute-sanitizer's word for a share without tests


class Piece(NamedTuple):
    """A command of the part of the work that is called `part`."""

    part: str
    name: str
    command: list[str]


def pieces(options: argparse.Namespace) -> Iterator[Piece]:
    """All work, the longest first."""
    if shutil.which("compute-sanitizer"):
        for tool, chosen in (("memcheck", options.sanitized), ("racecheck", RACED)):
            command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--print-limit", "20"]
            command += ["--report-api-errors", "no"]  # what the driver refuses is an error, or tried otherwise
            command += [*PYTEST, *SANITIZED, "-k", chosen]
            yield from shards(tool, command, options.jobs // 2)
    share = -(-options.seeds // options.jobs)
    for first in range(0, options.seeds, max(1, share)):
        seeds = f"{first}:{min(first + share, options.seeds)}"
        command = [
            sys.executable,
            "-m",
            "fuzz.run",
            "--target",
            options.target,
            "--seeds",
            seeds,
            "--stop",
            "3",
            "--ends",
        ]
        yield Piece("random", seeds, command)
    for style in STYLES:
        command = [sys.executable, "-m", "fuzz.check", "--style", style, "--target", f"{options.target}/code"]
        for first in range(0, options.programs, PROGRAMS):
            seeds = f"{first}:{min(first + PROGRAMS, options.programs)}"
            yield Piece("programs", f"{style} {seeds}", [*command, "--seeds", seeds, "--stop", "3"])
    for part, paths in {**SUITES, "gpu": ["tests/gpu"]}.items():
        where = [] if part == "gpu" else ["--target", options.target]
        yield from shards(part, [*PYTEST, *paths, *where], options.jobs if part == "language" else options.jobs // 3)


def shards(part: str, command: list[str], count: int) -> Iterator[Piece]:
    """A command of pytest in so many pieces, or in one."""
    for number in range(max(1, count)):
        yield Piece(part, f"{number + 1}/{max(1, count)}", [*command, "--shard", f"{number}/{max(1, count)}"])


def run(piece: Piece, limit: float) -> tuple[Piece, int, float, str]:
    """The exit status, seconds, and what was said."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MLTRITON_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    started = time.perf_counter()
    try:
        done = subprocess.run(
            piece.command,
            cwd=ROOT,
            env={**os.environ, **threads, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
        status, said = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        status, said = 124, (error.stdout or b"").decode(errors="replace") + f"\nnot done after {limit:.0f} s"
    return piece, status, time.perf_counter() - started, said


def gpu() -> str:
    """What the GPU is called; "" where there is none, which is said."""
    sys.path.insert(0, str(ROOT / "src"))
    from mltriton.errors import DeviceError
    from mltriton.targets.nvidia import driver

    try:
        return driver.device(0).name
    except DeviceError as error:
        print(f"nothing to test here: {error.message}")
        return ""


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--seeds", type=int, default=5000, help="random kernels, each compared with the executor")
    parser.add_argument("--programs", type=int, default=200, help="random programs of each style, against an evaluator")
    parser.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 2) - 1))
    parser.add_argument("--only", default="", help="parts: memcheck, racecheck, random, language, ...")
    parser.add_argument("--sanitized", default="77 or 65 or 513 or 257 or paged or grouped or around", help="pytest -k")
    parser.add_argument("--limit", type=float, default=540, help="seconds of a piece")
    parser.add_argument("--log", type=Path, help="a file for all that was said")
    options = parser.parse_args()
    name = gpu()
    if not name:
        return
    started, failed = time.perf_counter(), 0
    print(f"{name}, {options.jobs} processes", flush=True)
    wanted = [piece for piece in pieces(options) if not options.only or piece.part in options.only.split(",")]
    with ThreadPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(run, piece, options.limit) for piece in wanted]):
            piece, status, seconds, said = future.result()
            ok = status in (0, 5) or NOTHING in said  # 5: pytest had nothing in its share
            failed += not ok
            last = said.strip().splitlines()[-1:] or [""]
            print(f"{'ok    ' if ok else 'FAILED'} {piece.part} {piece.name}: {last[0]} ({seconds:.0f} s)", flush=True)
            if not ok:
                print(said[-SHOWN:], flush=True)
            if options.log is not None:
                with options.log.open("a", encoding="utf-8") as log:
                    log.write(f"===== {piece.part} {piece.name}: {status}\n{said}\n")
    print(f"{len(wanted) - failed} of {len(wanted)} pieces passed on {name}, {time.perf_counter() - started:.0f} s")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
