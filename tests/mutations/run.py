"""`make test-mutations`: each planted mistake, in a copy of src, must make a test fail.

`PYTHONPATH=tests python -m mutations.run [WORDS]`: all mutations, or those whose file or reason has one of the words.
The tree itself is never changed. First every selection of tests must pass without a mistake.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from mutations import MUTATIONS
from mutations.mutation import ROOT, SOURCE, Mutation

REQUIRED = 0.95  # of the mistakes must be noticed
LIMIT = 300  # seconds for one selection of tests: a mistake may make a loop endless
ResultT = TypeVar("ResultT")
_PASSED, _FAILED = 0, 1  # exit statuses of pytest; any other says that it did not run as it should


class Copy:
    """A copy of src in a directory, which one mistake at a time is planted in."""

    def __init__(self, directory: Path) -> None:
        self.source = directory / "src"
        self.cache = directory / "cache"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))

    def test(self, selection: Sequence[str]) -> tuple[int, str]:
        """Run tests on the copy: pytest's exit status and what it printed."""
        path = os.pathsep.join([str(self.source), str(ROOT / "tests")])
        environment = {**os.environ, "PYTHONPATH": path, "MLTRITON_CACHE_DIR": str(self.cache), "CI": "1"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *selection]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            return _FAILED, "timeout"
        return done.returncode, done.stdout + done.stderr

    def noticed_by(self, mutation: Mutation) -> str | None:
        """The first of the mutation's tests that fails. Raises `RuntimeError` where they cannot be run."""
        file = self.source / mutation.path
        text = file.read_text(encoding="utf-8")
        file.write_text(mutation.applied(self.source), encoding="utf-8")
        try:
            status, output = self.test(mutation.selection)
        finally:
            file.write_text(text, encoding="utf-8")
        if status == _PASSED:
            return None
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        if status != _FAILED and first is None:
            raise RuntimeError(f"{mutation.tests}: pytest ends with {status}\n{output[-2000:]}")
        return first[1] if first else output


def check_clean(copy: Copy, tests: str, selection: Sequence[str]) -> None:
    """A selection of tests passes without a mistake. Raises `RuntimeError`."""
    status, output = copy.test(selection)
    if status != _PASSED:
        raise RuntimeError(f"these tests fail without any mistake: {tests}\n{output[-3000:]}")


def caught(mutations: Sequence[Mutation], workers: int, directory: Path) -> list[bool]:
    """Whether each mutation is noticed, in order; reports as it goes."""
    copies: SimpleQueue[Copy] = SimpleQueue()
    for number in range(workers):
        copies.put(Copy(directory / str(number)))

    def with_copy(work: Callable[[Copy], ResultT]) -> ResultT:
        copy = copies.get()
        try:
            return work(copy)
        finally:
            copies.put(copy)

    def run(mutation: Mutation) -> bool:
        started = time.perf_counter()
        test = with_copy(lambda copy: copy.noticed_by(mutation))
        seconds = f"{time.perf_counter() - started:5.1f} s"
        print(f"{'caught' if test else 'MISSED'} {seconds}  {mutation.path}: {mutation.why}; {test}", flush=True)
        return test is not None

    selections = {mutation.tests: mutation.selection for mutation in mutations}
    with ThreadPoolExecutor(workers) as pool:
        for done in [
            pool.submit(with_copy, partial(check_clean, tests=tests, selection=selection))
            for tests, selection in selections.items()
        ]:
            done.result()
        return list(pool.map(run, mutations))


def main() -> None:
    """Run the mutations; exit status 1 where too few are caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutations whose file or reason has one of these words")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutations at a time")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if not options.words or any(w in f"{m.path} {m.why}" for w in options.words)]
    for mutation in chosen:
        mutation.applied()
        if not mutation.is_testable:
            print(f"left out, because {mutation.needs} is not installed: {mutation.path}: {mutation.why}")
    chosen = [mutation for mutation in chosen if mutation.is_testable]
    with tempfile.TemporaryDirectory() as directory:
        found = caught(chosen, options.jobs, Path(directory))
    print(f"{sum(found)} of {len(found)} mistakes caught")
    sys.exit(sum(found) < REQUIRED * len(found))


if __name__ == "__main__":
    main()
