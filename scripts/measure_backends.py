"""How fast torch.compile's programs are with Triton kernels on the CPU, against Inductor's C++ backend (needs g++).

`python scripts/measure_backends.py [--rounds N] [--rows N] [--threads N] [--write FILE] [PROGRAM]...` times the forward
part of the programs of `tests/as_triton/torch_programs.py` by both backends in one process, calls interleaved, and
prints for each the least and the median time of both and the quotient of the least. `--write` puts the table into a
page that has one for as many rows and threads.
"""

from __future__ import annotations

import argparse
import logging
import math
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "as_triton"), str(ROOT / "src")]

import torch  # noqa: E402
import torch_programs  # noqa: E402

BACKENDS = ("triton", "cpp")
CALLS = 10  # of one backend before it is the other's turn
COLUMNS = "Triton kernels, us: least, median | C++, us: least, median | C++ / Triton |\n|---|---|---|---|\n"
Times = dict[str, list[float]]


def compiled(run: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """A function by a backend: of its own code, since torch keeps what it compiled by code."""

    def call(*inputs: Any) -> Any:
        return run(*inputs)

    code = call.__code__.replace(co_name=backend)
    own = FunctionType(code, globals(), backend, None, call.__closure__)
    return torch.compile(own, options={"cpu_backend": backend}, dynamic=False)


def times(run: Callable[..., Any], inputs: Sequence[Any], rounds: int) -> Times:
    """Seconds of calls by backend."""
    torch._dynamo.reset()
    functions = {backend: compiled(run, backend) for backend in BACKENDS}
    found: Times = {backend: [] for backend in BACKENDS}
    with torch.no_grad():
        for function in functions.values():
            function(*inputs)
        for _ in range(rounds):
            for backend, function in functions.items():
                for _ in range(CALLS):
                    start = time.perf_counter()
                    function(*inputs)
                    found[backend].append(time.perf_counter() - start)
    return found


def row(name: str, found: Times) -> tuple[str, float]:
    """A line of the table, and the quotient."""
    least, middle = ({key: f(values) for key, values in found.items()} for f in (min, statistics.median))
    cells = (f"{least[key] * 1e6:.1f}, {middle[key] * 1e6:.1f}" for key in BACKENDS)
    ratio = least["cpp"] / least["triton"]
    return f"| {' | '.join((name, *cells, f'{ratio:.2f}'))} |", ratio


def table(names: Sequence[str], rounds: int, known: dict[str, torch_programs.Program]) -> Iterator[str]:
    """The lines of the table as they are known, and the geometric mean."""
    ratios: list[float] = []
    for name, (run, inputs) in known.items():
        if names and name not in names:
            continue
        line, ratio = row(name, times(run, inputs, rounds))
        ratios.append(ratio)
        yield line
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    yield f"| geometric mean of {len(ratios)} | | | {mean:.2f} |"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1, help="how many times as many rows as the tests have")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch._inductor.config.compile_threads = 1
    torch.set_num_threads(given.threads)
    mark = f"| rows x {given.rows}, threads: {given.threads} | "
    print(mark + COLUMNS, end="")
    lines: list[str] = []
    for line in table(given.names, given.rounds, torch_programs.programs(given.rows)):
        print(line, flush=True)
        lines.append(line)
    if given.write:
        made = mark + COLUMNS + "\n".join(lines) + "\n"
        given.write.write_text(re.sub(rf"{re.escape(mark)}.*\n(?:\|.*\n)*", lambda _: made, given.write.read_text()))


if __name__ == "__main__":
    main()
