"""Random programs on memory with a barrier on both sides of every store: several warps and lanes have no race, and
compute what the evaluator does.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.check import failure
from fuzz.programs import Program, program

BATCH = 50  # programs a slow test
UPDATE = re.compile(r"tl\.store\((.*?), (tl\.load\(.*\) \* 2 \+ 1)\)$")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the kernels out of the user's cache."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))


def _ordered(p: Program) -> Program:
    """The program with a barrier before every store as well; a block that is updated is loaded before it."""
    lines: list[str] = []
    for line in p.body.splitlines():
        indent, text = re.match(r"( *)(.*)", line).groups()  # type: ignore[union-attr]
        update = UPDATE.match(text)
        if update is not None:
            lines += [f"{indent}updated = {update[2]}", f"{indent}tl.debug_barrier()"]
            lines.append(f"{indent}tl.store({update[1]}, updated)")
        else:
            lines += [f"{indent}tl.debug_barrier()"] if text.startswith("tl.store(") else []
            lines.append(line)
    return replace(p, body="\n".join(lines) + "\n")


def _check(seeds: range, target: str, directory: Path) -> None:
    found = [failure(_ordered(program(seed, "memory")), target, directory) for seed in seeds]
    assert not any(found), "\n".join(text for text in found if text)


@pytest.mark.parametrize("target", ["generic", "xe:pvc/levels"])
def test_programs_of_several_warps(target: str, tmp_path: Path) -> None:
    _check(range(6), target, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, BATCH))
@pytest.mark.parametrize("target", ["generic", "xe:pvc/levels", "cpu"])
def test_many_programs_of_several_warps(target: str, first: int, tmp_path: Path) -> None:
    _check(range(first, first + BATCH), target, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, BATCH))
def test_machine_code_of_several_warps(first: int, tmp_path: Path) -> None:
    pytest.importorskip("dpctl")
    _check(range(first, first + BATCH), "xe:pvc", tmp_path)
