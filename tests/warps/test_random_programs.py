"""Random programs for warps: what check-warp-level accepts runs, whatever the data: all warps reach the same barriers,
and nothing that is stored depends on results that a warp did not receive. Without races it means the same at the level
of warps, where there is no race either, and where one thread runs the warps in turn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from mltriton.errors import MissingResultError, WarpDivergenceError
from mltriton.executor import Options, run
from mltriton.executor.dialects import warps
from mltriton.executor.faults import DataRace
from mltriton.ir.attributes import StringAttr
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline

WARPS = 4
PART = "!ttg.memdesc<1xi32, #ttg.shared_memory, mutable>"
WHOLE = "!ttg.memdesc<4xi32, #ttg.shared_memory, mutable>"
HEAD = f"""
module attributes {{mltriton.level = "tt", mltriton.warp_level = true, "ttg.num-warps" = {WARPS} : i32}} {{
tt.func public @f(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) {{
  %index = gpu.subgroup_id : index
  %id = arith.index_cast %index : index to i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c12 = arith.constant 12 : i32
  %memory = ttg.local_alloc : () -> {WHOLE}
  %first = ttg.memdesc_subview %memory[%id] : {WHOLE} -> {PART}
  %filled = tt.splat %id : i32 -> tensor<1xi32>
  ttg.local_store %filled, %first : tensor<1xi32> -> {PART}
  gpu.barrier
"""
OPERATIONS = ["arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.xori", "arith.divui", "arith.remui"]


class Generator:
    """Writes a program; `known` are the i32 values of each scope."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.depth = 0

    def program(self) -> str:
        known = ["%id", "%n", "%c0", "%c1", "%c2", "%c3"]
        lines = [line for _ in range(6) for line in self.statement(known)]
        store = ["%place = arith.addi %id, %c12 : i32", "%own = tt.addptr %q, %place : !tt.ptr<i32>, i32"]
        store.append(f"tt.store %own, {known[-1]} : !tt.ptr<i32>")
        return HEAD + "\n".join([*lines, *store, "  tt.return", "}", "}"])

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def value(self, known: list[str]) -> str:
        return self.random.choice(known[-6:] if self.random.random() < 0.6 else known)

    def statement(self, known: list[str]) -> Iterator[str]:
        choices = [self.compute, self.compute, self.select, self.load, self.store, self.barrier, self.across]
        choices += [self.share, self.fetch]
        if self.depth < 3:
            choices += [self.branch, self.branch, self.loop, self.while_loop]
        self.depth += 1
        yield from self.random.choice(choices)(known)
        self.depth -= 1

    def compute(self, known: list[str]) -> Iterator[str]:
        made = self.name()
        yield f"{made} = {self.random.choice(OPERATIONS)} {self.value(known)}, {self.value(known)} : i32"
        known.append(made)

    def condition(self, known: list[str]) -> tuple[str, str]:
        made = self.name()
        kind = self.random.choice(["eq", "ne", "slt", "ult"])
        return made, f"{made} = arith.cmpi {kind}, {self.value(known)}, {self.value(known)} : i32"

    def select(self, known: list[str]) -> Iterator[str]:
        condition, text = self.condition(known)
        yield text
        made = self.name()
        yield f"{made} = arith.select {condition}, {self.value(known)}, {self.value(known)} : i32"
        known.append(made)

    def load(self, known: list[str]) -> Iterator[str]:
        place, pointer, made = self.name(), self.name(), self.name()
        yield f"{place} = arith.andi {self.value(known)}, %c3 : i32"
        yield f"{pointer} = tt.addptr %p, {place} : !tt.ptr<i32>, i32"
        yield f"{made} = tt.load {pointer} : !tt.ptr<i32>"
        known.append(made)

    def store(self, known: list[str]) -> Iterator[str]:
        place, pointer = self.name(), self.name()
        yield f"{place} = arith.muli %id, %c3 : i32"
        yield f"{pointer} = tt.addptr %q, {place} : !tt.ptr<i32>, i32"
        condition, text = self.condition(known)
        yield text
        mask = f", {condition}" if self.random.random() < 0.3 else ""
        yield f"tt.store {pointer}, {self.value(known)}{mask} : !tt.ptr<i32>"

    def part(self, known: list[str]) -> Iterator[str]:
        """A place in shared memory, of this warp or another: its name comes last."""
        place, part = self.name(), self.name()
        value = "%id" if self.random.random() < 0.6 else self.value(known)
        yield f"{place} = arith.andi {value}, %c3 : i32"
        yield f"{part} = ttg.memdesc_subview %memory[{place}] : {WHOLE} -> {PART}"
        yield part

    def share(self, known: list[str]) -> Iterator[str]:
        *lines, part = self.part(known)
        block = self.name()
        yield from lines
        yield f"{block} = tt.splat {self.value(known)} : i32 -> tensor<1xi32>"
        yield f"ttg.local_store {block}, {part} : tensor<1xi32> -> {PART}"

    def fetch(self, known: list[str]) -> Iterator[str]:
        *lines, part = self.part(known)
        block, made = self.name(), self.name()
        if self.random.random() < 0.5:
            yield "gpu.barrier"
        yield from lines
        yield f"{block} = ttg.local_load {part} : {PART} -> tensor<1xi32>"
        if self.random.random() < 0.5:
            yield "gpu.barrier"
        yield f"{made} = tt.unsplat {block} : tensor<1xi32>"
        known.append(made)

    def barrier(self, known: list[str]) -> Iterator[str]:
        yield "gpu.barrier"

    def across(self, known: list[str]) -> Iterator[str]:
        made = self.name()
        to = self.random.choice(["", "", "<{dst_warps = array<i32: 0>}> ", "<{dst_warps = array<i32: 1, 2>}> "])
        scan = self.random.random() < 0.3
        name, end = ("scan", "tt.scan.return") if scan else ("reduce", "tt.reduce.return")
        yield f'{made} = "ttg.cross_warp_{name}"({self.value(known)}) {"" if scan else to}({{'
        yield "^bb0(%a: i32, %b: i32):"
        yield "  %c = arith.addi %a, %b : i32"
        yield f"  {end} %c : i32"
        yield "}) : (i32) -> i32"
        known.append(made)

    def body(self, known: list[str]) -> Iterator[str]:
        inner = list(known)
        for _ in range(self.random.randint(1, 3)):
            yield from self.statement(inner)
        yield f"scf.yield {self.value(inner)} : i32"

    def branch(self, known: list[str]) -> Iterator[str]:
        condition, text = self.condition(known)
        yield text
        made = self.name()
        yield f"{made} = scf.if {condition} -> (i32) {{"
        yield from self.body(known)
        yield "} else {"
        yield from self.body(known)
        yield "}"
        known.append(made)

    def loop(self, known: list[str]) -> Iterator[str]:
        upper, made, counter, carried = (self.name() for _ in range(4))
        yield f"{upper} = arith.andi {self.value(known)}, %c3 : i32"
        init = self.value(known)
        yield f"{made} = scf.for {counter} = %c0 to {upper} step %c1 iter_args({carried} = {init}) -> (i32) : i32 {{"
        yield from self.body([*known, counter, carried])
        yield "}"
        known.append(made)

    def while_loop(self, known: list[str]) -> Iterator[str]:
        """As long as a counter is below a bound that changes, at most 3 times."""
        made, first, second, count, round_ = (self.name() for _ in range(5))
        below, limit, left, next_ = (self.name() for _ in range(4))
        init = self.value(known)
        yield f"{made}:2 = scf.while ({first} = {init}, {count} = %c0) : (i32, i32) -> (i32, i32) {{"
        inner = [*known, first, count]
        yield from self.statement(inner)
        yield f"{limit} = arith.andi {self.value(inner)}, %c3 : i32"
        yield f"{below} = arith.cmpi ult, {count}, {limit} : i32"
        yield f"scf.condition({below}) {self.value(inner)}, {count} : i32, i32"
        yield "} do {"
        yield f"^bb0({second}: i32, {round_}: i32):"
        inner = [*known, second, round_]
        yield from self.statement(inner)
        yield f"{next_} = arith.addi {round_}, %c1 : i32"
        yield f"scf.yield {self.value(inner)}, {next_} : i32, i32"
        yield "}"
        self.count += 1
        left = f"%v{self.count}"
        yield f"{left} = arith.addi {made}#0, {made}#1 : i32"
        known.append(left)


CLEAN = "canonicalize,cse,licm,dce"
TO_WARPS = f"{CLEAN},assign-layouts,cse,distribute-to-warps,lower-cross-warp"
LEVELS = {"generic": (TO_WARPS, f"{TO_WARPS},{CLEAN}"), "cpu": (f"{TO_WARPS},serialize-warps,{CLEAN}",)}


def outcome(text: str, pipeline: str = "check-warp-level") -> str:
    """What the check says of a program; one that is accepted runs, also after the passes of `LEVELS`."""
    try:
        module = transformed(text, "generic", pipeline)
    except WarpDivergenceError:
        return "divergent"
    except MissingResultError:
        return "missing"
    try:
        expected = results(module, 0xFF)
    except DataRace:
        return "races"
    np.testing.assert_array_equal(results(module, 0x02), expected, err_msg=text)
    for target, pipelines in LEVELS.items():
        for lower in pipelines:
            np.testing.assert_array_equal(results(transformed(text, target, lower)), expected, err_msg=f"{lower}{text}")
    return "runs"


def transformed(text: str, target: str, pipeline: str) -> Module:
    module = parse_module(text, "program.mlir")
    module.attributes["ttg.target"] = StringAttr(target)
    return PassManager(parse_pipeline(pipeline)).run(module)


def results(module: Module, poison: int = 0xFF) -> np.ndarray:
    """What the program stores for two inputs, with `poison` as the bytes of results that a warp did not receive."""
    stored = []
    for data in range(2):
        p, q = np.random.default_rng(data).integers(0, 4, 4).astype(np.int32), np.zeros(16, np.int32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(warps, "POISON", poison)
            run(module, [p, q, data + 1], (1,), options=Options(uninitialised=True, order="shuffled", seed=data))
        stored.append(q)
    return np.array(stored)


@pytest.mark.parametrize("part", range(4))
def test_what_is_accepted_runs(part):
    outcomes = [outcome(Generator(1000 * part + seed).program()) for seed in range(40)]
    assert all(outcomes.count(kind) >= 3 for kind in ("runs", "divergent", "missing", "races")), outcomes


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_what_is_accepted_runs_at_length(part):
    for seed in range(200):
        outcome(Generator(100_000 + 1000 * part + seed).program(), f"{CLEAN},check-warp-level")
