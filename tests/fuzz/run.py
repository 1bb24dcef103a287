"""Runs generated kernels through `verify`; by hand: `PYTHONPATH=tests python -m fuzz.run --seeds 0:2000`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz.generator import Kernel, generate
from mltriton.compiler import Job, options_of
from mltriton.errors import TritonError
from mltriton.targets.target import find_target
from mltriton.tools.aot import load_kernel
from mltriton.tools.launches import entries_of, launch_of, sample_of_job
from mltriton.tools.level_runs import Runs
from mltriton.tools.verify import VerifyResult, verify_kernel, verify_module


def verify(kernel: Kernel, target: str, directory: Path) -> VerifyResult:
    """Run one kernel at every level."""
    fn = load_kernel(f"{_write(kernel, directory)}:kernel")
    return verify_kernel(
        fn,
        args=kernel.args_of_parameters,
        grid=kernel.grid,
        target=target,
        num_warps=kernel.num_warps,
        seed=kernel.seed,
    )


def verify_ends(kernel: Kernel, target: str, directory: Path) -> VerifyResult:
    """Run only what the front end makes of one kernel, in the executor, and the machine code."""
    fn = load_kernel(f"{_write(kernel, directory)}:kernel")
    launch = launch_of(fn, kernel.args_of_parameters, kernel.grid, has_signature=False, seed=kernel.seed)
    job = Job(fn, entries_of(fn, None, launch.values), find_target(target), options_of(num_warps=kernel.num_warps))
    sample = sample_of_job(job, launch, np.random.default_rng(kernel.seed))
    runs = Runs(sample, uninitialised=False, seed=kernel.seed)
    results = runs.of_module("the front end", job.source_module()), runs.of_binary(job)
    return VerifyResult(
        f"{fn.__name__} for {target}, {kernel.num_warps} warps", results, (f"grid {sample.grid}, {sample}",)
    )


def verify_passes(kernel: Kernel, passes: str, directory: Path) -> VerifyResult:
    """Run one kernel as the front end makes it, and after each of these passes."""
    fn = load_kernel(f"{_write(kernel, directory)}:kernel")
    args = kernel.args_of_parameters
    entries = entries_of(fn, None, args)
    module = Job(fn, entries, find_target("generic"), options_of(num_warps=kernel.num_warps)).source_module()
    return verify_module(module, passes, args=args, grid=kernel.grid, seed=kernel.seed)


Verify = Callable[[Kernel, str, Path], VerifyResult]


def complaint(seed: int, target: str, directory: Path, verified: Verify = verify) -> str | None:
    """What is wrong with the kernel of a seed: the report, and the smallest part of the source that shows it.

    `target` is a target's name, or a pipeline of passes of level `tt` after a colon (`:canonicalize,cse`).
    """
    if target.startswith(":"):
        target, verified = target[1:], verify_passes
    kernel = generate(seed)
    found = _failure(kernel, target, directory, verified)
    if found is None:
        return None
    parts = [kernel.only(output) for output in kernel.outputs]
    for part in sorted(parts, key=lambda part: len(part.statements)):
        smaller = _failure(part, target, directory, verified)
        if smaller is not None:
            return f"seed {seed}, target {target}\n{part.source}\n{smaller}"
    return f"seed {seed}, target {target}\n{kernel.source}\n{found}"


def _write(kernel: Kernel, directory: Path) -> Path:
    file = directory / f"kernel_{kernel.seed}_{'_'.join(kernel.outputs)}.py"  # one text a name: sources are cached
    file.write_text(kernel.source)
    return file


def _failure(kernel: Kernel, target: str, directory: Path, verified: Verify) -> str | None:
    try:
        result = verified(kernel, target, directory)
    except TritonError as error:
        return error.render()
    except Exception as error:  # a fuzz test reports whatever happens
        return f"{type(error).__name__}: {error}"
    return None if result.ok else str(result)


def search(parser: argparse.ArgumentParser, complain: Callable[[int, argparse.Namespace, Path], str | None]) -> None:
    """Read the options, print what there is to complain of for each seed, and exit with 1 where there was something."""
    parser.add_argument("--seeds", default="0:100", help="FIRST:END")
    parser.add_argument("--stop", type=int, default=10, help="stop after so many complaints")
    options = parser.parse_args()
    first, end = map(int, options.seeds.split(":"))
    complaints, started = 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(first, end):
            found = complain(seed, options, Path(directory))
            if found is not None:
                complaints += 1
                print(f"{found}\n{'-' * 80}", flush=True)
            if complaints >= options.stop:
                break
    print(f"{complaints} complaints, {time.perf_counter() - started:.0f} s")
    sys.exit(complaints > 0)


def main() -> None:
    """Run a range of seeds and print every complaint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cpu", help="a target, or passes of level tt: :canonicalize,cse")
    parser.add_argument("--ends", action="store_true", help="skip the levels between the front end and machine code")
    search(
        parser,
        lambda seed, options, folder: complaint(seed, options.target, folder, verify_ends if options.ends else verify),
    )


if __name__ == "__main__":
    main()
