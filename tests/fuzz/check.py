"""Runs random programs at every level and compares each with `evaluator.py`.

By hand: `PYTHONPATH=tests python -m fuzz.check --style control --target cpu --seeds 0:2000`.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.evaluator import evaluate
from fuzz.programs import STYLES, Program, program
from fuzz.run import search
from fuzz.scratch import scratch_of_nan
from mltriton.compiler import Job, options_of
from mltriton.errors import SharedMemoryError, TritonError
from mltriton.frontend.signature import parse_signature
from mltriton.targets.target import find_target
from mltriton.tools.aot import load_kernel
from mltriton.tools.launches import Launch, sample_of_job
from mltriton.tools.level_runs import Runs
from mltriton.tools.samples import Copy
from ptx_emulator.launch import install

POINTERS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"} | {
    f"{sign}int{bits}": f"{'u' if sign else 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def wanted(p: Program) -> dict[str, Any]:
    """The arrays as the evaluator leaves them."""
    args = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in p.args.items()}
    with np.errstate(all="ignore"):
        evaluate(p.body, p.grid, args, p.dtypes)
    return args


def failure(p: Program, target: str, directory: Path) -> str | None:
    """How a level differs from the evaluator; None where all agree. `xe:pvc/levels` leaves out the machine code,
    `cuda/code` takes nothing else.
    """
    right = wanted(p)
    try:
        for level in _levels(p, right, target, directory):
            if isinstance(level.fault, SharedMemoryError):
                return None  # Too large for the machine, which it says.
            if not level.ok:
                return str(level)
    except TritonError as error:
        return error.render()
    except Exception as error:  # a fuzz test reports whatever happens
        return f"{type(error).__name__}: {error}"
    return None


def _levels(p: Program, right: dict[str, Any], target: str, directory: Path) -> Iterator[Any]:
    file = directory / f"program_{abs(hash(p.body)):x}.py"  # one text a name: sources are cached
    file.write_text(p.source, encoding="utf-8")
    fn = load_kernel(f"{file}:kernel")
    texts = [f"*{POINTERS[p.dtypes[name]]}:16" if isinstance(v, np.ndarray) else "i32" for name, v in p.args.items()]
    entries = parse_signature(", ".join(texts), list(p.args))
    name, slash, only = target.partition("/")
    job = Job(fn, entries, find_target(name), options_of(num_warps=p.num_warps))
    sample = sample_of_job(job, Launch(dict(p.args), p.grid, {}), np.random.default_rng(0))
    runs = Runs(sample, uninitialised=True, seed=p.seed)
    runs.reference = {name: Copy(right[name]) for name in sample.types}
    with scratch_of_nan():
        if not slash:
            yield from runs.of_job(job, each_pass=False)
        elif only == "code":
            yield runs.of_binary(job)
        else:
            yield from (runs.of_module(level, module) for level, module in job.modules())


def complaint(seed: int, style: str, target: str, directory: Path, *, shrink: bool = True) -> str | None:
    """What is wrong with the program of a seed: a smaller program that shows it, and the report."""
    p = program(seed, style)
    found = failure(p, target, directory)
    if found is None:
        return None
    if shrink:
        p = shrunk(p, lambda s: _is_valid(s) and _kind(failure(s, target, directory)) == _kind(found))
        found = failure(p, target, directory) or found
    scalars = {name: value for name, value in p.args.items() if not isinstance(value, np.ndarray)}
    return f"{style} {seed}, target {target}, {p.num_warps} warps, {scalars}, grid {p.grid}\n{p.source}\n{found}"


def _kind(found: str | None) -> str | None:
    """What a report says first: that a level differs, or the error that ended it."""
    kind = re.search(r"DIFFERS|\b[A-Z]\w+(?=: )", found or "")
    return kind.group() if kind else None


def _is_valid(p: Program) -> bool:
    try:
        wanted(p)
    except Exception:  # whatever a mutilated program does
        return False
    return True


def shrunk(p: Program, fails: Callable[[Program], bool]) -> Program:
    """The program without every statement that it fails without."""
    removed = True
    while removed:
        removed = False
        for number in reversed(range(len(_places(ast.parse(p.body))))):
            tree = ast.parse(p.body)
            places = _places(tree)
            if number >= len(places):
                continue
            statements, place = places[number]
            del statements[place]
            _fill_empty(tree)
            smaller = replace(p, body=ast.unparse(tree) + "\n")
            if fails(smaller):
                p, removed = smaller, True
    return p


def _places(tree: ast.Module) -> list[tuple[list[ast.stmt], int]]:
    """Every statement that can be left out, as a list and a place in it."""
    found: list[tuple[list[ast.stmt], int]] = []
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                last = len(statements) - isinstance(node, ast.Module)  # the kernel stays
                found += [(statements, at) for at in range(last) if not isinstance(statements[at], ast.Pass)]
    return found


def _fill_empty(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef) and not node.body:
            node.body.append(ast.Pass())


def main() -> None:
    """Run a range of seeds and print every complaint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--style", default="control", choices=STYLES)
    parser.add_argument("--emulated", action="store_true", help="cuda:90 without a GPU, by the PTX emulator")

    def complain(seed: int, options: argparse.Namespace, folder: Path) -> str | None:
        with pytest.MonkeyPatch.context() as patch:
            if options.emulated:
                install(patch)
            return complaint(seed, options.style, options.target, folder)

    search(parser, complain)


if __name__ == "__main__":
    main()
