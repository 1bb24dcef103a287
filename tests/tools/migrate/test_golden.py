"""Golden files: every rule in both directions, and the ways in which real code uses block pointers."""

import ast
import io
import re
import tokenize
from functools import cache
from typing import Any

import pytest

from migrate_cases import FORMS, NAMES, case
from mltriton.tools.migrate import Options, Result, migrate_source
from mltriton.tools.migrate.prove.proof import prove
from mltriton.tools.migrate.prove.verdicts import Limits

OLD = {"make_block_ptr", "advance", "boundary_check"}


def uses_block_pointers(text: str) -> bool:
    return any(
        getattr(node, field, None) in OLD
        for node in ast.walk(ast.parse(text))
        for field in ("id", "attr", "arg", "name")
    )


@cache
def migrated(name: str, form: str) -> Result:
    return migrate_source(case(name)[0], name, Options(to=form))


def each_form(name: str) -> list[Any]:
    """The forms of a case; where the descriptors asked for are those that `auto` chooses, this is shown at length."""
    texts = case(name)[1]
    long = {"descriptor"} if texts["descriptor"] == texts["auto"] != texts["pointer"] else set()
    return [pytest.param(name, form, marks=pytest.mark.slow if form in long else ()) for form in FORMS]


@pytest.mark.parametrize(("name", "form"), [each for name in NAMES for each in each_form(name)])
def test_golden(name: str, form: str) -> None:
    result = migrated(name, form)
    assert result.text == case(name)[1][form]
    assert bool(result.unresolved) == (name == "unresolved")
    assert uses_block_pointers(result.text) == (name == "unresolved")


def test_every_comment_survives() -> None:
    for name in NAMES:
        before, expected = case(name)
        for form in FORMS:
            assert comments(before) == comments(expected[form]), (name, form)


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = (token.string for token in tokens if token.type == tokenize.COMMENT)
    # Comments that spoke of block pointers speak of what these became.
    return sorted(re.sub("block[ _](pointer|ptr)|descriptor", "pointer", text.lower()) for text in found)


@pytest.mark.parametrize(("name", "form"), [each for name in NAMES for each in each_form(name)])
def test_a_second_run_changes_nothing(name: str, form: str) -> None:
    _, expected = case(name)
    again = migrate_source(expected[form], name, Options(to=form))
    assert again.text == expected[form]
    assert not again.changes


@pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("    ", "\t"), ("\n\n\n@", "\n\f\n@")])
def test_line_ends_and_tabs_survive(old: str, new: str) -> None:
    aligned = () if new == "\t" else ("real_comments",)
    for name in ("rule_02_matmul", "real_branches", "real_places", "real_tuples", *aligned):
        before, expected = case(name)
        assert migrate_source(before.replace(old, new), name).text == expected["auto"].replace(old, new)


def test_a_missing_end_of_line_stays_missing() -> None:
    for name in ("rule_02_matmul", "real_branches", "real_places", "unresolved"):
        before, expected = case(name)
        result = migrate_source(before.removesuffix("\n"), name)
        assert result.text == expected["auto"].removesuffix("\n")


@pytest.mark.parametrize("form", ["auto", pytest.param("descriptor", marks=pytest.mark.slow), "pointer"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "unresolved"])
def test_old_and_new_kernels_write_the_same_bytes(name: str, form: str) -> None:
    proofs = prove(migrated(name, form), limits=Limits(machine_code=0))
    assert proofs
    assert all(proof.proven for proof in proofs), [str(proof) for proof in proofs]


def test_no_descriptor_has_another_last_stride_than_one_or_what_order_puts_first() -> None:
    for name in NAMES:
        for text in case(name)[1].values():
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("make_tensor_descriptor"):
                    strides = (
                        node.args[2]
                        if len(node.args) > 2
                        else next(k.value for k in node.keywords if k.arg == "strides")
                    )
                    assert isinstance(strides, ast.Tuple | ast.List)
                    last = ast.unparse(strides.elts[-1])
                    assert last == "1" or "stride" in last
