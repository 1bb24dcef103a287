"""Which form a block pointer gets, and what cannot be decided."""

import pytest

from mltriton.tools.migrate import Options, Result, migrate_source

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, M, N, stride, str_d, s_d, flag, BM: tl.constexpr, BN: tl.constexpr):
    tl.static_assert(BM >= 16 and BN >= 16)
    p = tl.make_block_ptr(x_ptr, {shape}, {strides}, {offsets}, {block}, {order})
    x = tl.load(p{load})
    tl.store(y_ptr, tl.sum(x))
"""
PLAIN = {
    "shape": "(M, N)",
    "strides": "(N, 1)",
    "offsets": "(flag, 0)",
    "block": "(BM, BN)",
    "order": "(1, 0)",
    "load": ", boundary_check=(0, 1)",
}


def migrated(to: str = "auto", target: str = "xe", **changes: str) -> Result:
    return migrate_source(KERNEL.format(**{**PLAIN, **changes}), options=Options(to, target))


def form(result: Result) -> str:
    assert not result.unresolved
    return "descriptor" if "make_tensor_descriptor" in result.text else "pointer"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "descriptor"),
        ({"strides": "(1, M)", "order": "(0, 1)"}, "descriptor"),
        ({"strides": "(N, stride)"}, "descriptor"),
        ({"strides": "(N, str_d)"}, "descriptor"),
        ({"strides": "(N, s_d)"}, "descriptor"),
        ({"strides": "(N, stride)", "order": "(0, 1) if flag else (1, 0)"}, "pointer"),
        ({"strides": "(N, M)"}, "pointer"),
        ({"strides": "(N, 2)"}, "pointer"),
        ({"load": ", boundary_check=(0,)"}, "pointer"),
        ({"load": ", boundary_check=(0,)", "shape": "(M, BN)"}, "descriptor"),
        (
            {"load": ", boundary_check=(0,)", "shape": "(M, 64)", "block": "(BM, 32)", "offsets": "(0, 32)"},
            "descriptor",
        ),
        ({"load": ", boundary_check=(0,)", "shape": "(M, 63)", "block": "(BM, 32)", "offsets": "(0, 32)"}, "pointer"),
        ({"block": "(BM, 4)"}, "pointer"),
        ({"block": "(4, BN)"}, "descriptor"),
        ({"load": ", boundary_check=(0, 1), volatile=True"}, "pointer"),
        ({"load": ", boundary_check=(0, 1), padding_option='nan'"}, "descriptor"),
        (
            {
                "shape": "(M,)",
                "strides": "(1,)",
                "offsets": "(0,)",
                "block": "(BM,)",
                "order": "(BN,)",
                "load": ", boundary_check=(BN,)",
            },
            "descriptor",
        ),
    ],
)
def test_auto_takes_a_descriptor_where_one_is_legal_and_the_same(changes: dict[str, str], expected: str) -> None:
    assert form(migrated(**changes)) == expected


@pytest.mark.parametrize("changes", [{"strides": "(N, M)"}, {"block": "(BM, 4)"}, {"strides": "(N, 2)"}])
def test_an_illegal_descriptor_is_not_written_even_when_asked_for(changes: dict[str, str]) -> None:
    assert form(migrated("descriptor", **changes)) == "pointer"


def test_pointers_where_asked_for() -> None:
    assert form(migrated("pointer")) == "pointer"


@pytest.mark.parametrize("target", ["nvidia", "any"])
def test_unknown_alignment_is_no_descriptor_where_the_target_insists_on_it(target: str) -> None:
    assert form(migrated(target=target)) == "pointer"
    assert form(migrated(target=target, strides="(64, 1)")) == "descriptor"


def test_an_unchecked_load_that_may_leave_its_shape_is_a_condition() -> None:
    result = migrated(load="")
    assert form(result) == "descriptor"
    (condition,) = result.of_kind("condition")
    assert "does not check every dimension" in condition.text
    assert result.contract is not None
    assert "boundary_check = (0, 1,)" in result.contract


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": "shape"}, "`shape` is not written as a tuple here"),
        ({"load": ", boundary_check=checks"}, "boundary_check is not written as a tuple of numbers here"),
        ({"load": ", boundary_check=(0, 1), padding_option=flag"}, "padding_option is not a plain text here"),
        ({"load": ", boundary_check=(BM, BN)"}, "boundary_check is not written as a tuple of numbers here"),
        ({"load": ", mask=flag"}, "a block pointer takes no mask"),
        ({"order": "(1,)"}, "the arguments of make_block_ptr have different lengths"),
        ({"order": "*rest"}, "the arguments of make_block_ptr are not all written out"),
    ],
)
def test_what_cannot_be_decided_stays_and_says_why(changes: dict[str, str], message: str) -> None:
    result = migrated(**changes)
    assert result.text == result.source
    assert message in " ".join(note.text for note in result.unresolved)


def test_something_that_is_no_block_pointer_on_another_path_stays() -> None:
    text = KERNEL.format(**PLAIN).replace("    x = tl", "    if flag:\n        p = y_ptr\n    x = tl")
    result = migrate_source(text)
    assert result.text == text
    assert "block pointer here only on some paths" in result.unresolved[0].text


HELPER = """@triton.jit
def of(p, other, n):
    if n > 3:
        p = other
    return tl.load(p)


@triton.jit
def kernel"""


def test_a_helper_that_is_not_understood_keeps_its_signature() -> None:
    text = KERNEL.replace("@triton.jit\ndef kernel", HELPER).replace("tl.load(p{load})", "of(p, y_ptr, M)")
    result = migrate_source(text.format(**PLAIN))
    assert result.unresolved
    assert not result.changed


def test_text_without_block_pointers_is_not_even_parsed() -> None:
    assert migrate_source("def f(:\n").text == "def f(:\n"


def test_comments_and_formatting_survive() -> None:
    text = (
        KERNEL.format(**PLAIN)
        .replace("    p = tl", "    # where x lies\n    p  =  tl")
        .replace("    x = tl", "    x   = (tl")
        .replace("(0, 1))\n", "(0, 1)))  # read it\n")
    )
    result = migrate_source(text)
    assert "    # where x lies\n    p  =  tl.make_tensor_descriptor(x_ptr, (M, N), (N, 1), (BM, BN))\n" in result.text
    assert "    x   = (p.load([flag, 0]))  # read it\n" in result.text


def test_kernels_in_functions_and_classes_are_migrated() -> None:
    lines = KERNEL.format(**PLAIN).splitlines()
    kernel = "\n".join(f"        {line}" for line in lines[4:])
    text = "import triton\n\n\ndef build():\n    import triton.language as tl\n    if True:\n"
    text += f"{kernel}\n    return kernel\n"
    text += f"\n\nclass Kernels:\n    class Inner:\n{kernel}\n"
    result = migrate_source(text)
    assert result.text.count("p = tl.make_tensor_descriptor(x_ptr, (M, N), (N, 1), (BM, BN))") == 2
    assert result.text.count("x = p.load([flag, 0])") == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x = tl.load(p", "x = tl.load(q := p", "is used in a way that is not understood"),
        ("x = tl.load(p", "x = tl.load(*[p]", "is used in a way that is not understood"),
        ("    x = tl", "    q = r = tl.advance(p, (0, BN))\n    x = tl", "a chained assignment"),
        ("    x = tl", "    p += 1\n    x = tl", "is used in a way that is not understood"),
        ("    x = tl", "    unknown.p = p\n    x = tl", "is used in a way that is not understood"),
        (
            "    x = tl",
            "    elsewhere(pointer=p)\n    x = tl",
            "is passed to elsewhere, which is not among the functions",
        ),
        ("(M, N), (N, 1), (flag, 0), (BM, BN), (1, 0)", "**parts", "are not all written out"),
    ],
)
def test_unusual_uses_stay_and_say_why(old: str, new: str, message: str) -> None:
    text = KERNEL.format(**PLAIN).replace(old, new)
    result = migrate_source(text)
    assert result.text == text
    assert message in " ".join(note.text for note in result.unresolved)


@pytest.mark.parametrize("what", ["dtype.element_ty", "type.element_ty", "type.element_ty.element_ty"])
@pytest.mark.parametrize(("to", "expected"), [("auto", "p.dtype)"), ("pointer", "p.dtype.element_ty)")])
def test_every_spelling_of_the_element_type(what: str, to: str, expected: str) -> None:
    text = KERNEL.format(**PLAIN).replace("tl.sum(x)", f"tl.sum(x).to(p.{what})")
    result = migrate_source(text, options=Options(to))
    assert expected in result.text
    assert not result.unresolved
