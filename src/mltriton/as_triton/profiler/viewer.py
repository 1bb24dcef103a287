"""`triton.profiler.viewer`: a profile's tree with the numbers asked for, as text.

Level: user. Reads what `finalize` wrote. Metrics: `time/s|ms|us|ns`, `avg_time/...`, `cpu_time/...`, `count`, and by
time `flop/s`, `mflop/s`, `gflop/s`, `tflop/s` (with a width: `tflop16/s`), `byte/s`, `gbyte/s`, `tbyte/s`. A node's
number is that of all below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mltriton.as_triton.profiler import COUNT, CPU_TIME, TIME
from mltriton.errors import OptionError

__all__ = ["parse", "print_tree", "read"]

_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_PREFIXES = {"": 1.0, "m": 1e6, "g": 1e9, "t": 1e12}
_TIME = re.compile(r"(avg_|cpu_|)time/(s|ms|us|ns)")
_RATE = re.compile(r"(|m|g|t)(flop|byte)(8|16|32|64|)/s")
Tree = dict[str, Any]


def read(filename: str | Path) -> tuple[Tree, dict[str, Any]]:
    """The tree of a file, and the devices. Raises `OptionError` where it is none."""
    try:
        tree, devices = json.loads(Path(filename).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(f"{filename} is no profile", found=str(error)) from None
    return tree, devices


def parse(
    metrics: Sequence[str],
    filename: str | Path,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[Tree, list[str]]:
    """The tree with these metrics at each node, and their names.

    Of nodes: those on a path to a name that `include` matches, without those that `exclude` matches, and with at least
    `threshold` of the root's first metric. Raises `OptionError` for a metric that there is not.
    """
    tree = read(filename)[0]
    _sum_up(tree)
    for node in _nodes(tree):
        node["shown"] = [_value(metric, node["metrics"]) for metric in metrics]
    least = (threshold or 0) * (tree["shown"][0] or 0)
    kept = _kept(tree, include, exclude, least)
    return kept or {**tree, "children": []}, list(metrics)


def print_tree(tree: Tree, metrics: Sequence[str], depth: int = 100, format: str | None = None) -> None:
    """Print the tree, its first metric in front of each name and the others behind it."""
    print(", ".join(metrics))
    for indent, node in _lines(tree, "", depth):
        first, *others = (f"{value:.3f}" if value is not None else "nan" for value in node["shown"])
        rest = f" ({', '.join(others)})" if others else ""
        print(f"{indent}{first} {node['frame']['name']}{rest}")


def _sum_up(node: Tree) -> None:
    for child in node["children"]:
        _sum_up(child)
        for name, value in child["metrics"].items():
            node["metrics"][name] = node["metrics"].get(name, 0) + value


def _nodes(node: Tree) -> Iterator[Tree]:
    yield node
    for child in node["children"]:
        yield from _nodes(child)


def _value(metric: str, numbers: Mapping[str, float]) -> float | None:
    """A node's number; None where nothing is known."""
    if metric == COUNT:
        return numbers.get(COUNT)
    if found := _TIME.fullmatch(metric):
        taken = numbers.get(CPU_TIME if found[1] == "cpu_" else TIME)
        calls = numbers.get(COUNT, 1) if found[1] == "avg_" else 1
        return None if taken is None else taken / calls / _UNITS[found[2]]
    if found := _RATE.fullmatch(metric):
        amount, taken = numbers.get(f"{found[2]}s{found[3]}"), numbers.get(TIME)
        return None if not taken or amount is None else amount / (taken * 1e-9) / _PREFIXES[found[1]]
    raise OptionError(f"the viewer has no metric {metric!r}", expected="time/ms, tflop16/s, gbyte/s, count, ...")


def _kept(node: Tree, include: str | None, exclude: str | None, least: float) -> Tree | None:
    name = node["frame"]["name"]
    if (exclude and re.fullmatch(exclude, name)) or (node["shown"][0] or 0) < least:
        return None
    wanted = None if include and re.fullmatch(include, name) else include  # Whatever is below a match is kept.
    children = [kept for child in node["children"] if (kept := _kept(child, wanted, exclude, least)) is not None]
    return {**node, "children": children} if children or not wanted else None


def _lines(node: Tree, indent: str, depth: int) -> Iterator[tuple[str, Tree]]:
    yield indent, node
    if depth > 0:
        for child in node["children"]:
            yield from _lines(child, f"{indent}  ", depth - 1)
