"""torch's own operations (`op_db`) by torch.compile with Triton kernels on the CPU, compared with eager torch.

`python operations.py [--samples N] [--types TYPE,...] [--processes N] [--results FILE] [OPERATION]...` compiles the
samples that torch has for each operation and element type, with `--processes 0` in this process, which a crash ends.
What differs from eager torch, or is refused, is compiled by Inductor's C++ backend, too (which needs a C++ compiler):
it counts where that one does it, and is wrong where the two differ, unless it is at most twice as far as eager torch
from the same in float64 (sums of atomic additions are rounded in another order on several threads). Prints a line for
each operation and type with a failure, and the sum. What FILE has already is not run again. The status is 1 where fewer
than 99 % pass.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

import mltriton.as_triton

TYPES = ("float32", "float64", "int64", "bool", "float16", "bfloat16")
SECONDS = 300  # for one operation and type
PASSED, WRONG, REFUSED, UNCOUNTED = "passed", "wrong", "refused", "uncounted"
# Memory that nobody wrote to, or that is not the tensor's alone.
UNDEFINED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted", "resize_")
Verdicts = list[tuple[str, str]]
SORTS = ("sort", "argsort")  # which leave the order of equal elements open unless they are stable


class Sample(NamedTuple):
    """The tensors of a call, and what makes the call of them."""

    tensors: list[torch.Tensor]
    call: Callable[[Sequence[torch.Tensor]], Any]


def operations() -> dict[str, Any]:
    """torch's table by name and variant."""
    if "expecttest" not in sys.modules:  # torch's module of test helpers derives a class from one of that package.
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in op_db if op.name not in UNDEFINED}


def samples_of(operation: Any, dtype: torch.dtype, most: int) -> list[Sample]:
    """At most so many samples, evenly chosen from all."""
    torch.manual_seed(1)
    found = list(operation.sample_inputs("cpu", dtype))
    step = max(len(found) / most, 1)
    return [_sample(operation, found[int(i * step)]) for i in range(min(most, len(found)))]


def _sample(operation: Any, given: Any) -> Sample:
    args, keywords = given.args, given.kwargs
    if operation.name in SORTS:
        args, keywords = (), keywords | dict(zip(("dim", "descending"), args, strict=False)) | {"stable": True}
    leaves, tree = pytree.tree_flatten((given.input, args, keywords))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(tensors: Sequence[torch.Tensor]) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, tree)
        return operation.op(first, *args, **kwargs)

    return Sample([leaves[i] for i in places], call)


def run(samples: Sequence[Sample], backend: str | None) -> list[Any]:
    """What the samples give, compiled as one function by a backend of Inductor (eager where None)."""

    def everything(inputs: list[list[torch.Tensor]]) -> list[Any]:
        return [sample.call(tensors) for sample, tensors in zip(samples, inputs, strict=True)]

    torch.manual_seed(2)
    inputs = [[tensor.clone() for tensor in sample.tensors] for sample in samples]
    if backend is None:
        return everything(inputs)
    torch._dynamo.reset()
    torch._inductor.config.cpu_backend = backend
    return torch.compile(everything, dynamic=False)(inputs)


def same(found: Any, expected: Any) -> str:
    """Nothing, or how two results differ."""
    try:
        torch.testing.assert_close(found, expected, equal_nan=True, check_stride=False)
    except (AssertionError, TypeError, ValueError) as error:
        return " ".join(str(error).split())[:300]
    return ""


def as_near(sample: Sample, found: Any, expected: Any) -> bool:
    """Whether a result is at most twice as far from the same call in float64 as eager torch's."""
    wide = [tensor.double() if tensor.is_floating_point() else tensor.clone() for tensor in sample.tensors]
    try:
        ours, theirs, exact = (pytree.tree_leaves(value) for value in (found, expected, sample.call(wide)))
        return all(
            (our.double() - true).abs().max() <= 2 * (their.double() - true).abs().max()
            for our, their, true in zip(ours, theirs, exact, strict=True)
        )
    except (AttributeError, RuntimeError, TypeError, ValueError):  # The operation has no float64, or gives no tensors.
        return False


def verdict(sample: Sample, expected: Any) -> tuple[str, str]:
    """What becomes of one sample, and why."""
    try:
        found = run([sample], "triton")[0]
        outcome, says = WRONG, same(found, expected)
    except Exception as error:
        found, outcome, says = None, REFUSED, f"{type(error).__name__}: {error}"
    if not says:
        return PASSED, ""
    try:
        theirs = run([sample], "cpp")[0]
    except Exception:
        return UNCOUNTED, "refused by the C++ backend, too"
    if outcome == WRONG and (not same(found, theirs) or as_near(sample, found, expected)):
        return PASSED, ""
    if different := same(theirs, expected):
        return UNCOUNTED, f"the C++ backend differs from eager, too: {different}; ours: {says[:300]}"
    return outcome, says


def compare(operation: Any, dtype: torch.dtype, most: int) -> Verdicts:
    """The verdicts on an operation's samples of a type: all in one program, one by one where that fails."""
    samples = []
    try:
        samples = samples_of(operation, dtype, most)
        expected = run(samples, None)
    except Exception as error:
        return [(UNCOUNTED, f"eager: {error}")] * max(len(samples), 1)
    try:
        if not same(run(samples, "triton"), expected):
            return [(PASSED, "")] * len(samples)
    except Exception:
        pass
    return [verdict(sample, run([sample], None)[0]) for sample in samples]


def prepare() -> dict[str, Any]:
    """Let this process compile anew whatever it is asked for, and without a word; the operations."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.fallback_random = True
    torch._inductor.config.fx_graph_cache = False
    return operations()


def work() -> None:
    """Answer requests `[name, type, most]`, a line each, by verdicts."""
    known = prepare()
    for line in sys.stdin:
        name, kind, most = json.loads(line)
        print("\n" + json.dumps(compare(known[name], getattr(torch, kind), most)), flush=True)


def answer(requests: Sequence[tuple[str, str]], most: int) -> Iterator[tuple[str, str, Verdicts]]:
    """The verdicts on operations and types, from this process."""
    known = prepare()
    for name, kind in requests:
        yield name, kind, compare(known[name], getattr(torch, kind), most)


def ask(requests: Sequence[tuple[str, str]], most: int) -> Iterator[tuple[str, str, Verdicts]]:
    """The verdicts on operations and types, from a process that is replaced where it ends or takes too long."""
    process = None
    for name, kind in requests:
        if process is None or process.poll() is not None:
            command = [sys.executable, "-W", "ignore", __file__, "--work"]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert process.stdin is not None and process.stdout is not None
        timer = Timer(SECONDS, process.kill)
        timer.start()
        try:
            print(json.dumps([name, kind, most]), file=process.stdin, flush=True)
            line = next((line for line in process.stdout if line.startswith("[[") or line == "[]\n"), None)
        except BrokenPipeError:
            line = None
        timer.cancel()
        if line is None:
            process.wait()
            yield name, kind, [(REFUSED, f"the process ended with {process.returncode} (-9: after {SECONDS} s)")]
        else:
            yield name, kind, json.loads(line)
    if process is not None:
        process.communicate()


def report(
    names: Sequence[str], kinds: Sequence[str], most: int, processes: int, results: Path | None = None
) -> Counter[str]:
    """Compare, and print every failure and the sum; `results` has a line of JSON for each operation and type."""
    known = operations()
    old = [json.loads(line) for line in results.read_text().splitlines()] if results and results.exists() else []
    found: dict[tuple[str, str], Verdicts] = {(name, kind): verdicts for name, kind, verdicts in old}
    requests = [
        (name, kind)
        for name in known
        if not names or name in names or known[name].name in names
        for kind in kinds
        if known[name].supports_dtype(getattr(torch, kind), "cpu")
    ]
    missing = [request for request in requests if request not in found]

    def part(first: int) -> None:
        mine = missing[first :: max(processes, 1)]
        for name, kind, verdicts in ask(mine, most) if processes else answer(mine, most):
            found[name, kind] = verdicts
            if results:
                with results.open("a") as file:
                    print(json.dumps([name, kind, verdicts]), file=file)
            for outcome, says in {outcome: says for outcome, says in verdicts if outcome != PASSED}.items():
                many = sum(other == outcome for other, _ in verdicts)
                print(f"{name} {kind}: {many} of {len(verdicts)} {outcome}: {says}", flush=True)

    if processes:
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(part, range(processes)))
    else:
        part(0)
    counts = Counter(outcome for request in requests for outcome, _ in found[request])
    counted = sum(count for outcome, count in counts.items() if outcome != UNCOUNTED)
    share = f"{100 * counts[PASSED] / max(counted, 1):.2f} %"
    print(f"{share} of {counted} samples pass; {dict(counts)}", flush=True)
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="OPERATION")
    parser.add_argument("--samples", type=int, default=8, help="of each operation and type")
    parser.add_argument("--types", default=",".join(TYPES), help="separated by commas")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, help="a file to go on with")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.work:
        work()
        return 0
    counts = report(given.names, given.types.split(","), given.samples, given.processes, given.results)
    return int(counts[PASSED] < 99 * (counts[WRONG] + counts[REFUSED]))


if __name__ == "__main__":
    assert mltriton.as_triton
    sys.exit(main())
