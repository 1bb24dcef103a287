"""Run libraries written for Triton with mltriton in its place, each operation forward and backward against plain torch.

`python scripts/test_libraries.py [--into FOLDER] [--write FILE] [LIBRARY]...` fetches the libraries (pip, into FOLDER)
and prints a table for each, which takes the place of the library's table in FILE. Needs the network and torch. A
process for each library; nothing of theirs is changed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIBRARIES = ("liger", "fla_ops", "fla_before", "gems", "vllm_kernels", "openai_kernels", "others")


def fetch(folder: Path, packages: Sequence[str]) -> None:
    """Install packages without what they need into a folder."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *packages]
    subprocess.run(command, check=True)


def flat(value: Any) -> list[Any]:
    """The tensors in what an operation gives."""
    items = value if isinstance(value, tuple | list) else (value,)
    return [item for item in items if hasattr(item, "is_floating_point")]


def fresh(inputs: Sequence[Any]) -> list[Any]:
    """Copies of inputs that require gradients where gradients are compared."""

    def one(x: Any) -> Any:
        if not hasattr(x, "is_floating_point"):
            return x
        return x.detach().clone().requires_grad_(x.is_floating_point() and not hasattr(x, "no_gradient"))

    return [one(x) for x in inputs]


def run(operation: Callable[..., Any], inputs: Sequence[Any]) -> tuple[list[Any], list[Any], float]:
    """Values, gradients and seconds of one forward and backward pass."""
    import torch

    torch.manual_seed(1)
    given = fresh(inputs)
    started = time.perf_counter()
    values = flat(operation(*given))
    if any(value.requires_grad for value in values):
        sum(
            (value * torch.randn(value.shape, dtype=value.dtype)).sum() for value in values if value.requires_grad
        ).backward()
    seconds = time.perf_counter() - started
    return values, [getattr(x, "grad", None) for x in given], seconds


def far(found: Any, expected: Any) -> float:
    """The largest difference in units of the largest finite value; infinities and NaN have to be the same."""
    if found.shape != expected.shape:
        return float("inf")
    found, expected = found.double(), expected.double()
    same = (found == expected) | (found.isnan() & expected.isnan())
    difference = (found - expected).abs().masked_fill(same, 0).nan_to_num(nan=float("inf"))
    return float(difference.max() / expected.abs().masked_fill(~expected.isfinite(), 0).max().clamp(min=1e-3))


def best(ours: Callable[..., Any], reference: Callable[..., Any], inputs: Sequence[Any]) -> tuple[float, float]:
    """The shortest time of ten of each, in turn, on one thread: other programs disturb two far more."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times = [(run(ours, inputs)[2], run(reference, inputs)[2]) for _ in range(10)]
    finally:
        torch.set_num_threads(threads)
    mine, theirs = (min(column) for column in zip(*times, strict=True))
    return mine, theirs


def _verdict(difference: float, near: float) -> str:
    return "right" if difference <= near else f"WRONG {difference:.1e}"


def check(ours: Callable[..., Any], reference: Callable[..., Any], inputs: Sequence[Any], near: float) -> str:
    """A row of the table, after the name: forward, backward, the first call and ours over plain torch."""
    try:
        values, gradients, first = run(ours, inputs)
        expected, their_gradients, _ = run(reference, inputs)
        forward = max(far(v, e) for v, e in zip(values, expected, strict=True))
        both = [(g, t) for g, t in zip(gradients, their_gradients, strict=True) if t is not None]
        missing = [t for g, t in both if g is None]
        backward = max((far(g, t) for g, t in both if g is not None), default=0.0)
        mine, theirs = best(ours, reference, inputs)
        says = [_verdict(forward, near), "-" if not both else "MISSING" if missing else _verdict(backward, near)]
        return " | ".join([*says, f"{first:.1f}", f"{theirs / mine:.2f}"])
    except Exception as error:
        text = re.sub(r"\S*/(?=\w+\.py:\d)", "", " ".join(str(error).split()))[:100].replace("|", "/")
        return f"FAILS {type(error).__name__}: {text} | | |"


def main() -> None:
    """Fetch and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", default=list(LIBRARIES))
    parser.add_argument("--into", type=Path, default=Path(".libraries"))
    parser.add_argument("--operations", "-k", default="", help="only operations whose name has this text")
    parser.add_argument("--write", type=Path, help="a document whose tables are made anew")
    parser.add_argument("--here", action="store_true", help="run one library in this process")
    given = parser.parse_args()
    if not given.here:
        for name in given.libraries:
            again = [sys.executable, __file__, "--here", "--into", str(given.into), "-k", given.operations, name]
            made = subprocess.run(again, check=False, stdout=subprocess.PIPE, text=True).stdout
            print(made, flush=True)
            if given.write is not None:
                put(given.write, made.strip())
        return
    (name,) = given.libraries
    folder = given.into.resolve() / name
    sys.path[:0] = [str(HERE / "libraries"), str(folder)]
    warnings.simplefilter("ignore")
    os.environ.setdefault("TRITON_PRINT_AUTOTUNING", "0")
    importlib.import_module("mltriton.as_triton")
    library = importlib.import_module(name)
    if not all(_is_there(folder, package) for package in library.PACKAGES):
        getattr(library, "fetch", partial(fetch, packages=library.PACKAGES))(folder)
        importlib.invalidate_caches()
    print(f"\n## {', '.join(library.PACKAGES)}\n")
    print("| operation | forward | backward | first call, s | torch's time / ours |\n|---|---|---|---|---|")
    known = {name: row for name, row in library.operations().items() if given.operations in name}
    named: Sequence[str] = getattr(library, "AS_CUDA", ())
    as_cuda = [*known] if named == "all" else named
    for operation in sorted(known, key=as_cuda.__contains__):
        if operation in as_cuda:
            importlib.import_module("mltriton.as_triton.as_cuda").show_cpu_as_cuda()
        ours, reference, inputs, *near = known[operation]
        row = check(ours, reference, inputs, *(near or [getattr(library, "NEAR", 1e-4)]))
        print(f"| {operation}{' (--as-cuda)' if operation in as_cuda else ''} | {row} |", flush=True)


def put(document: Path, table: str) -> None:
    """Let a table take the place of that with the same heading, or stand at the end."""
    heading = table.partition("\n")[0]
    if not heading.startswith("## "):
        return
    head, *parts = re.split(r"^(?=## )", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = [table + "\n" if part.startswith(heading + "\n") else part.strip() + "\n" for part in parts]
    if table + "\n" not in kept:
        kept.append(table + "\n")
    document.write_text("\n".join([head.strip() + "\n", *kept]), encoding="utf-8")


def _is_there(folder: Path, package: str) -> bool:
    name, _, version = package.partition("==")
    return (folder / f"{name.replace('-', '_')}-{version}.dist-info").exists()


if __name__ == "__main__":
    main()
