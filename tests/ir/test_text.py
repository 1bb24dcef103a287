"""Every operation's text: samples print as they are written, also through generic syntax and with locations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mltriton.dialects.registry import operations
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op
from mltriton.ir.syntax import old_syntaxes, syntax_of
from mltriton.ir.verifier import verify
from mltriton.passes.levels import verify_level

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.mlir"))
WITHOUT_SYNTAX = {  # combine regions: upstream prints these in generic syntax too
    "tt.reduce",
    "tt.scan",
    "ttg.cross_warp_reduce",
    "ttg.cross_warp_scan",
}


@pytest.fixture(params=SAMPLES, ids=lambda path: path.stem)
def text(request: pytest.FixtureRequest) -> str:
    return request.param.read_text(encoding="utf-8")


def test_a_sample_prints_as_it_is_written(text: str) -> None:
    module = parse_module(text)
    verify(module)
    verify_level(module)
    assert print_op(module) + "\n" == text


def test_generic_text_says_the_same(text: str) -> None:
    generic = print_op(parse_module(text), generic=True)
    again = parse_module(generic)
    assert print_op(again, generic=True) == generic
    assert print_op(again) + "\n" == text


def test_locations_are_kept(text: str) -> None:
    located = print_op(parse_module(text, "sample.mlir"), locations=True)
    assert 'loc("sample.mlir":' in located
    assert print_op(parse_module(located), locations=True) == located
    assert print_op(parse_module(located)) + "\n" == text


def test_the_samples_hold_every_operation() -> None:
    seen = {op.name for path in SAMPLES for op in parse_module(path.read_text(encoding="utf-8")).walk()}
    assert seen == set(operations())


@pytest.mark.parametrize("cls", operations().values(), ids=lambda cls: cls.name)
def test_every_format_compiles(cls: type[Operation]) -> None:
    assert (syntax_of(cls) is None) == (cls.name in WITHOUT_SYNTAX)
    assert len(old_syntaxes(cls)) == len(cls.old_syntax)


def test_upstream_text_loads() -> None:
    path = Path(__file__).parent / "upstream.ttir"
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    verify(module)
    expected = path.with_suffix(".expected.mlir").read_text(encoding="utf-8")
    assert print_op(module) + "\n" == expected
    assert print_op(parse_module(expected)) + "\n" == expected


def test_locations_of_upstream_text() -> None:
    module = parse_module((Path(__file__).parent / "upstream.ttir").read_text(encoding="utf-8"))
    located = print_op(module, locations=True)
    assert re.search(r"^#loc\d* = loc\(callsite\(#loc\d* at #loc\d*\)\)$", located, re.MULTILINE)
    assert re.search(r'^#loc\d* = loc\("offsets"\(#loc\d*\)\)$', located, re.MULTILINE)
