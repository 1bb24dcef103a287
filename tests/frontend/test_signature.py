"""Signatures in upstream's ahead-of-time syntax."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.errors import SignatureError
from mltriton.frontend.signature import SCALARS, Argument, Constant, of_parameters, parse_entry, parse_signature


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("*fp32:16", Argument("fp32", is_pointer=True, divisibility=16)),
        ("*bf16", Argument("bf16", is_pointer=True)),
        ("*kfp16:16", Argument("fp16", is_pointer=True, is_const=True, divisibility=16)),
        ("i32", Argument("i32")),
        ("i32:16", Argument("i32", divisibility=16)),
        ("i1", Argument("i1")),
        ("f64", Argument("fp64")),
        ("i32:1", Constant(1)),
        ("fp32:1", Constant(1.0)),
        ("1024", Constant(1024)),
        ("-3", Constant(-3)),
        ("1e-5", Constant(1e-5)),
        ("True", Constant(True)),
        ("None", Constant(None)),
        ("'tf32'", Constant("tf32")),
        ("tensordesc<fp16[128, 64]>", Argument("fp16", block=(128, 64))),
    ],
)
def test_entries(text: str, entry: Argument | Constant) -> None:
    assert parse_entry(text) == entry
    assert type(getattr(parse_entry(text), "value", None)) is type(getattr(entry, "value", None))


def test_a_string_goes_by_position_and_keeps_brackets_and_quotes_together() -> None:
    entries = parse_signature(" *fp32:16,tensordesc<bf16[64,32]> , 'a,b', 8", ["x", "d", "s", "n"])
    assert entries == {
        "x": Argument("fp32", is_pointer=True, divisibility=16),
        "d": Argument("bf16", block=(64, 32)),
        "s": Constant("a,b"),
        "n": Constant(8),
    }


def test_a_dict_goes_by_name_in_the_kernels_order_and_may_leave_out_parameters() -> None:
    entries = parse_signature({"n": "i32", "x": "*i8"}, ["x", "n", "BLOCK"])
    assert list(entries.items()) == [("x", Argument("i8", is_pointer=True)), ("n", Argument("i32"))]


@pytest.mark.parametrize("text", ["(*fp32:16, i32,1)", "( *fp32:16 , i32, 1, )"])
def test_a_tuple_is_its_parts(text: str) -> None:
    parts = {"t.0": Argument("fp32", is_pointer=True, divisibility=16), "t.1": Argument("i32"), "t.2": Constant(1)}
    assert parse_signature({"t": text}, ["t"]) == parts
    assert parse_signature(f"i1, {text}, 3", ["x", "t", "y"]) == {"x": Argument("i1"), **parts, "y": Constant(3)}
    assert of_parameters(parts) == {"t": "(*fp32:16, i32, 1)"}


def test_a_tuple_of_a_tuple_and_a_descriptor() -> None:
    entries = parse_signature("((i32, i64), tensordesc<fp16[4,8]>)", ["t"])
    assert list(entries) == ["t.0.0", "t.0.1", "t.1"]
    assert entries["t.1"] == Argument("fp16", block=(4, 8))


@pytest.mark.parametrize("text", ["(i32, fp33)", "(i32,, i32)", "(i32", "(i32))"])
def test_bad_tuples(text: str) -> None:
    with pytest.raises(SignatureError):
        parse_signature({"t": text}, ["t"])


def test_no_parameters() -> None:
    assert parse_signature("", []) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fp33", r"unknown type 'fp33'.*Did you mean fp32\?"),
        ("quaternion", r"unknown type 'quaternion'.*The types are i1, "),
        ("*fp32:8", r"\*fp32 does not take the hint '8'.*expected 16"),
        ("*fp32:1", r"does not take the hint '1'"),
        ("fp32:16", r"fp32 does not take the hint '16'.*expected 1\n"),
        ("i32:", r"i32 does not take the hint ''"),
        ("**fp32", r"'\*\*fp32' is neither a type nor a constant"),
        ("", r"an entry is empty"),
        ("(1, 2)", r"is neither a type nor a constant"),
        ("tensordesc<fp16[64,0]>", r"the block shape \[64,0\]"),
        ("tensordesc<fp17[64]>", r"unknown type 'fp17'"),
    ],
)
def test_bad_entries(text: str, message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        parse_entry(text)
    assert re.search(message, str(caught.value), re.DOTALL)


def test_the_error_points_at_the_entry() -> None:
    with pytest.raises(SignatureError) as caught:
        parse_signature("*fp32, i33, 4", ["x", "n", "B"])
    assert str(caught.value).splitlines()[:3] == [
        "<signature>:1:8: SignatureError: unknown type 'i33'",
        "    1 | *fp32, i33, 4",
        "      |        ^",
    ]


def test_the_wrong_number_of_entries_lists_the_parameters() -> None:
    with pytest.raises(
        SignatureError, match=r"2 entries and the kernel 3 parameters\nexpected x, y, n, found \*fp32, 4"
    ):
        parse_signature("*fp32, 4", ["x", "y", "n"])


def test_an_unknown_name_in_a_dict() -> None:
    with pytest.raises(SignatureError, match=r"no parameter 'BLOK'\nDid you mean BLOCK\?"):
        parse_signature({"BLOK": "4"}, ["x", "BLOCK"])
    with pytest.raises(SignatureError, match=r"no parameter 'q'\nIts parameters are x, BLOCK\."):
        parse_signature({"q": "4"}, ["x", "BLOCK"])


def test_an_error_in_a_dict_names_the_parameter() -> None:
    with pytest.raises(SignatureError, match="<signature of n>:1:1: SignatureError: unknown type 'i31'"):
        parse_signature({"n": "i31"}, ["n"])


SCALAR = st.sampled_from(sorted(set(SCALARS.values())))
BLOCK = st.lists(st.integers(1, 512), min_size=1).map(tuple)
NUMBER = st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
ARGUMENTS = st.one_of(
    st.builds(Argument, SCALAR, st.just(True), st.booleans(), st.sampled_from([1, 16])),
    st.builds(Argument, SCALAR),
    st.builds(
        lambda scalar, block: Argument(scalar, block=tuple(block)), SCALAR, st.lists(st.integers(1, 512), min_size=1)
    ),
    st.builds(
        Constant, st.one_of(st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False))
    ),
)


@given(st.lists(ARGUMENTS))
def test_formatting_and_parsing_are_inverse(entries: list[Argument | Constant]) -> None:
    named = {f"p{index}": entry for index, entry in enumerate(entries)}
    assert parse_signature(", ".join(map(str, named.values())), list(named)) == named
