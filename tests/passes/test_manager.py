"""The pass manager, pipelines, reproducers and `opt`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler.levels import IR_LEVELS
from mltriton.errors import IRSyntaxError, OptionError, PassError, TargetError, VerificationError
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32
from mltriton.passes.manager import PassManager, timing_table
from mltriton.passes.pipeline import make_pass, parse_pipeline, pipeline_text
from mltriton.passes.registry import PASSES, find_pass
from mltriton.passes.reproducer import pipeline_of
from mltriton.tools.opt import list_passes, run_opt

PROGRAM = "tt.func @k(%x: i32) {\n  %0 = arith.addi %x, %x : i32\n  tt.return\n}\n"


@dataclass(frozen=True)
class Mark(Pass):
    """Adds its options to the module's attributes."""

    name = "mark"
    value: int = 1
    enabled: bool = True
    sizes: tuple[int, ...] = ()
    target: str | None = None
    factor: float = 1.5

    def run(self, module: Module) -> Module:
        return Module((), [], module.attributes | {f"mark{self.value}": IntegerAttr(self.value, I32)}, module.regions)


@dataclass(frozen=True)
class Crash(Pass):
    """Fails inside."""

    name = "crash"
    when: str = "always"

    def run(self, module: Module) -> Module:
        raise KeyError("inside")


@dataclass(frozen=True)
class Spoil(Pass):
    """Leaves invalid IR."""

    name = "spoil"

    def run(self, module: Module) -> Module:
        module.body.block.ops[0].regions[0].block.ops.pop()
        return module


@dataclass(frozen=True)
class Refuse(Pass):
    """Finds something wrong with the user's program."""

    name = "refuse"

    def run(self, module: Module) -> Module:
        raise TargetError("the target has no such dot")


HERE: dict[str, type[Pass]] = {cls.name: cls for cls in (Mark, Crash, Spoil, Refuse)}


def passes(text: str) -> list[Pass]:
    return parse_pipeline(text, HERE.__getitem__)


def test_passes_run_in_order_and_are_timed() -> None:
    seen: list[str] = []
    manager = PassManager(passes("mark,mark{value=2}"), observe=lambda step, module: seen.append(str(module)))
    module = manager.run(parse_module(PROGRAM))
    assert list(module.attributes) == ["mark1", "mark2"]
    assert ["mark2" in text for text in seen] == [False, True]
    assert [name for name, _ in manager.timings] == ["mark", "mark"]
    table = timing_table(manager.timings).splitlines()
    assert len(table) == 3 and table[-1].endswith("100.0 %  total")


def test_programs_are_shown_after_passes() -> None:
    log = io.StringIO()
    PassManager(passes("mark,mark{value=2}"), print_after={"all"}, log=log).run(parse_module(PROGRAM))
    assert log.getvalue().count("// -----// IR Dump After mark //----- //") == 2
    log = io.StringIO()
    PassManager(passes("mark,mark"), print_after={"other"}, log=log).run(parse_module(PROGRAM))
    assert log.getvalue() == ""


def test_a_failure_inside_a_pass_leaves_a_reproducer(tmp_path: Path) -> None:
    manager = PassManager(passes("mark,crash{when=now},mark"), reproducer_dir=tmp_path)
    with pytest.raises(PassError) as caught:
        manager.run(parse_module(PROGRAM))
    assert caught.value.message == "pass crash failed: KeyError: 'inside'"
    path = caught.value.reproducer
    assert path is not None and path.parent == tmp_path and str(path) in caught.value.render()
    text = path.read_text(encoding="utf-8")
    assert pipeline_of(text) == "crash{when=now}"
    assert "mark1" in parse_module(text).attributes  # the program right before the failing pass


def test_invalid_ir_after_a_pass_is_named(tmp_path: Path) -> None:
    with pytest.raises(PassError) as caught:
        PassManager(passes("spoil"), reproducer_dir=tmp_path).run(parse_module(PROGRAM))
    assert "pass spoil left invalid IR: tt.func: a region ends wrongly" in caught.value.message
    assert caught.value.reproducer is not None
    assert "arith.addi" in caught.value.reproducer.read_text(encoding="utf-8")


def test_without_verifying_invalid_ir_goes_on() -> None:
    module = PassManager(passes("spoil"), verify_each=False).run(parse_module(PROGRAM))
    assert len(list(module.walk())) == 3


def test_invalid_input_is_the_inputs_fault() -> None:
    module = parse_module(PROGRAM)
    Spoil().run(module)
    with pytest.raises(VerificationError):
        PassManager(passes("mark")).run(module)


def test_a_users_mistake_goes_through_unchanged(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="the target has no such dot"):
        PassManager(passes("refuse"), reproducer_dir=tmp_path).run(parse_module(PROGRAM))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("mark", [Mark()]),
        (" mark , crash ", [Mark(), Crash()]),
        ("mark{value=3 enabled=false}", [Mark(3, enabled=False)]),
        ("mark{value=16,sizes=4:8,target=cpu}", [Mark(16, sizes=(4, 8), target="cpu")]),
        ("mark{sizes=4:8 factor=2 target=none}", [Mark(sizes=(4, 8), factor=2.0)]),
        ('mark{enabled},crash{when="a b"}', [Mark(), Crash("a b")]),
    ],
)
def test_pipelines_are_read(text: str, expected: list[Pass]) -> None:
    assert passes(text) == expected
    assert passes(pipeline_text(expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mark{", "cannot read the pipeline at `mark{`"),
        ("mark crash", "cannot read the pipeline"),
        ("mark{valeu=1}", "mark has no option valeu"),
        ("mark{value=one}", "option value of mark does not take `one`"),
        ("mark{enabled=maybe}", "option enabled of mark does not take `maybe`"),
        ("mark{=1}", "cannot read the options"),
    ],
)
def test_wrong_pipelines_are_named(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        passes(text)
    assert message in caught.value.message


def test_near_names_are_proposed() -> None:
    with pytest.raises(OptionError, match="Did you mean value"):
        make_pass(Mark, {"valeu": "1"})
    with pytest.raises(OptionError, match="Did you mean canonicalize"):
        find_pass("canonicalise")
    with pytest.raises(OptionError, match="Passes: "):
        find_pass("xyz")


@pytest.mark.parametrize("name", PASSES)
def test_every_registered_pass_has_its_name(name: str) -> None:
    cls = find_pass(name)
    assert issubclass(cls, Pass) and cls.name == name and cls.__doc__
    assert make_pass(cls, {}) == cls()


def test_opt_runs_passes_over_text() -> None:
    assert "arith.addi" not in run_opt(PROGRAM, "canonicalize")
    assert '"arith.addi"' in run_opt(PROGRAM, generic=True)
    assert 'loc("k.mlir":2:2)' in run_opt(PROGRAM, filename="k.mlir", locations=True)


def test_opt_splits_files_and_keeps_line_numbers() -> None:
    text = f"{PROGRAM}// -----\n{PROGRAM.replace('@k', '@second')}"
    output = run_opt(text, split_input_file=True)
    first, second = output.split("// -----\n")
    assert "@k" in first and "@second" in second
    assert run_opt(output, split_input_file=True) == output
    with pytest.raises(IRSyntaxError) as caught:
        run_opt(text.replace("@second(%x", "@second(%y"), split_input_file=True)
    assert caught.value.line == 7


def test_opt_reports_to_the_log() -> None:
    log = io.StringIO()
    run_opt(PROGRAM, "cse,canonicalize", print_ir_after="canonicalize", time_passes=True, log=log)
    assert log.getvalue().count("IR Dump After") == 1
    assert "ms" in log.getvalue() and "total" in log.getvalue()


def test_opt_verifies_what_it_reads() -> None:
    with pytest.raises(VerificationError):
        run_opt('tt.func @k(%x: i32) { %0 = "arith.negf"(%x) : (i32) -> i32 tt.return }')


def test_opt_runs_reproducers() -> None:
    text = f"// pipeline: canonicalize\n{PROGRAM}"
    assert run_opt(text, run_reproducer=True) == run_opt(PROGRAM, "canonicalize")
    with pytest.raises(OptionError, match="no reproducer"):
        run_opt(PROGRAM, run_reproducer=True)


def test_a_pass_to_show_that_there_is_not_is_an_error() -> None:
    with pytest.raises(OptionError, match="unknown pass csx\nDid you mean cse"):
        run_opt(PROGRAM, "cse", print_ir_after="csx")


def test_the_list_of_passes_says_what_each_does() -> None:
    text = list_passes()
    assert "cse (any)\n    Let equal operations be one.\n" in text
    assert "assign-layouts (tt)\n" in text
    assert "convert-dot-operands (tt or warp)\n" in text
    assert [line.partition(" ")[0] for line in text.splitlines() if not line.startswith(" ")] == list(PASSES)


KERNELS = {
    "rows": "*fp32:16, *fp32:16, *fp32:16, i32, 1024",
    "product": "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 64, 32",
}


@triton.jit
def rows(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.exp(tl.load(x + i, i < n)), 0)
    tl.store(o + i, tl.load(y + i, i < n) / total, i < n)


@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BLOCK)
    total = tl.zeros((M, N), tl.float32)
    for j in range(0, K, BLOCK):
        total += tl.dot(tl.load(a + m * K + (j + k)[None, :]), tl.load(b + (j + k)[:, None] * N + n))
    tl.store(c + m * N + n, total)


@pytest.mark.parametrize("target", ["cpu", "generic", "cuda:90", "xe:pvc"])
@pytest.mark.parametrize("kernel", [rows, product], ids=lambda kernel: kernel.__name__)
def test_every_pass_by_hand_takes_a_program_of_a_level_or_names_what_it_takes(kernel: Any, target: str) -> None:
    compiled = triton.compile(kernel, signature=KERNELS[kernel.__name__], target=target)
    for level in IR_LEVELS:
        text = compiled.asm[level]
        for name in PASSES:
            try:
                run_opt(text, name)
            except (OptionError, TargetError):  # an internal error is neither
                continue


def test_a_program_of_the_wrong_level_is_an_error_that_names_both() -> None:
    with pytest.raises(OptionError, match="distribute-to-warps takes no program at level tt") as error:
        run_opt(PROGRAM, "distribute-to-warps")
    assert (error.value.expected, error.value.found) == ("level ttg", "level tt")
    warps = 'module attributes {"mltriton.level" = "warp"} {\n' + PROGRAM + "}\n"
    with pytest.raises(OptionError, match="assign-layouts takes no program at level warp"):
        run_opt(warps, "canonicalize,assign-layouts")
    assert "tt.return" in run_opt(warps, "convert-dot-operands,dce")


def test_loop_nests_are_of_targets_whose_blocks_lie_in_memory() -> None:
    text = 'module attributes {"mltriton.level" = "warp", ttg.target = "cuda:90"} {\n' + PROGRAM + "}\n"
    for name in ("form-nests", "pack-operands"):
        with pytest.raises(TargetError, match=f"{name} is for targets whose blocks lie in memory"):
            run_opt(text, name)
