"""Random modules: what is printed reads back as the same program and prints the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.printer import print_op
from mltriton.ir.verifier import verify

from .random_modules import modules

quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@quick
@given(module=modules())
def test_text_is_a_fixpoint(module: Module, generic: bool) -> None:
    verify(module)
    for locations in (False, True):
        text = print_op(module, generic, locations)
        again = parse_module(text)
        verify(again)
        assert print_op(again, generic, locations) == text
        assert print_op(again, not generic, locations) == print_op(module, not generic, locations)


@quick
@given(module=modules())
def test_reading_keeps_operations_types_and_attributes(module: Module) -> None:
    again = parse_module(print_op(module, locations=True))
    before, after = list(module.walk()), list(again.walk())
    assert [op.name for op in before] == [op.name for op in after]
    for old, new in zip(before, after, strict=True):
        assert [value.type for value in (*old.operands, *old.results)] == [
            value.type for value in (*new.operands, *new.results)
        ]
        assert old.loc == new.loc
        assert {k: str(v) for k, v in old.attributes.items()} == {k: str(v) for k, v in new.attributes.items()}
