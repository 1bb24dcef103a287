"""Rule 9: which masked loads become loads of descriptors, and why others stay."""

import pytest

from mltriton.tools.migrate import Options, migrate_source
from mltriton.tools.migrate.prove.proof import prove
from mltriton.tools.migrate.prove.verdicts import Limits

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, M, N, stride, flag, BM: tl.constexpr, BN: tl.constexpr):
    tl.static_assert(BM >= 16)
    tl.static_assert(BN >= 16)
    i = tl.program_id(0) * BM
    rows = i + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    x = tl.zeros((BM, BN), tl.float32)
    {before}
    x += tl.load({pointer}, {mask})
    p = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (i, 0), (BM, BN), (1, 0))
    tl.store(p, x, boundary_check=(0, 1))
"""
PLAIN = {
    "before": "pass",
    "pointer": "x_ptr + rows[:, None] * N + cols[None, :]",
    "mask": "mask=(rows[:, None] < M) & (cols[None, :] < N)",
}


def text(changes: dict[str, str]) -> str:
    return KERNEL.format(**{**PLAIN, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "make_tensor_descriptor(x_ptr, (M, N), (N, 1), (BM, BN))"),
        ({"mask": "mask=(M > rows)[:, None] & (cols <= N - 1)"}, "(M, N), (N, 1), (BM, BN))"),
        ({"pointer": "x_ptr + i * N + tl.arange(0, BM)[:, None] * N + cols"}, "(x_ptr, (M, N), (N, 1), (BM, BN))"),
        ({"mask": "mask=rows[:, None] < M"}, "make_tensor_descriptor(x_ptr, (M, BN), (N, 1), (BM, BN))"),
        ({"pointer": "x_ptr + rows.to(tl.int64)[:, None] + cols[None, :] * M"}, "(x_ptr, (N, M), (M, 1), (BN, BM))"),
        (
            {"pointer": "x_ptr + stride * N + (tl.multiple_of(cols, 8)[None, :] + rows[:, None] * N)"},
            "x_ptr + stride * N",
        ),
        (
            {"mask": "mask=(rows[:, None] < M) & (cols[None, :] < N) & (rows[:, None] >= cols)"},
            "tl.where((rows[:, None] >= cols), ",
        ),
    ],
)
def test_a_bound_becomes_a_shape(changes: dict[str, str], expected: str) -> None:
    result = migrate_source(text(changes))
    assert expected in result.text
    assert "tl.load" not in result.text
    (proof,) = prove(result, limits=Limits(machine_code=0))
    assert proof.proven, str(proof)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mask": "mask=tl.load(y_ptr + cols)[None, :] > 0"}, "no bound"),
        ({"before": "inside = cols[None, :] < N; N += flag", "mask": "mask=inside & (rows[:, None] < M)"}, "changed"),
        ({"pointer": "x_ptr + (rows - flag)[:, None] * N + cols", "mask": "mask=cols[None, :] < N"}, "negative"),
        ({"pointer": "x_ptr + rows[:, None] * N + (cols + i)[None, :]"}, "count from different places"),
        ({"pointer": "x_ptr + (rows % M)[:, None] * N + cols[None, :]"}, "not a base plus ranges"),
        (
            {"pointer": "x_ptr + rows[:, None] * N + cols[None, :] * stride"},
            "no stride of (N, stride) is known to be 1",
        ),
        ({"pointer": "x_ptr + rows[:, None]"}, "do not vary along every dimension"),
        ({"mask": "mask=(rows[:, None] < M) & (cols < N) & (cols < stride)"}, "several bounds"),
        ({"mask": "mask=(rows[:, None] < M) & (cols[None, :] < N) & (flag > 0)"}, "whether there is anything to load"),
        ({"mask": "mask=(rows[:, None] < M) & (cols[None, :] >= 1)"}, "bounded only by the part that depends on data"),
        ({"mask": "mask=rows[:, None] < M, other=-1.0"}, "padded with -1.0"),
        ({"mask": "mask=rows[:, None] < M, volatile=True"}, "volatile"),
        ({"before": "q = elsewhere(p0 := tl.make_block_ptr(x_ptr, (M,), (1,), (0,), (BM,), (0,)))"}, "it waits"),
    ],
)
def test_a_load_that_no_descriptor_does_stays_and_says_why(changes: dict[str, str], why: str) -> None:
    before = text(changes)
    result = migrate_source(before)
    (line,) = (each for each in before.splitlines() if "x += tl.load" in each)
    assert line in result.text
    (note,) = result.of_kind("mask")
    assert why in note.text


def test_parameters_of_helpers_may_be_blocks() -> None:
    outer = "\n\n@triton.jit\ndef outer(x, y, BM: tl.constexpr):\n    kernel(x, y, 1, 1, 1, 1, BM, BM)\n"
    called = text({}) + outer
    assert "x += tl.load(x_ptr + rows" in migrate_source(called).text


def test_what_only_a_rewritten_load_used_goes() -> None:
    result = migrate_source(text({"before": "ptrs = x_ptr + rows[:, None] * N + cols[None, :]", "pointer": "ptrs"}))
    assert "ptrs" not in result.text
    assert "rows" not in result.text
    assert "x += x_desc.load([i, 0])" in result.text


@pytest.mark.parametrize(("to", "target"), [("pointer", "xe"), ("auto", "nvidia")])
def test_masked_loads_stay_where_no_descriptor_is_wanted(to: str, target: str) -> None:
    assert "x += tl.load(x_ptr + rows" in migrate_source(text({}), options=Options(to, target)).text


def test_a_kernel_with_masked_pointers_only_changes_where_asked_and_is_noted_otherwise() -> None:
    lines = [line for line in text({}).splitlines(keepends=True) if "make_block_ptr" not in line]
    store = "    tl.store(y_ptr + rows[:, None] * N + cols[None, :], x, (rows < M)[:, None] & (cols < N))\n"
    only = "".join(lines).replace("    tl.store(p, x, boundary_check=(0, 1))\n", store)
    for to in ("auto", "pointer"):
        result = migrate_source(only, options=Options(to))
        assert not result.changed
        (note,) = result.of_kind("mask")
        assert "1 masked load of pointers left" in note.text
        assert ("--to descriptor writes 1" in note.text) == (to == "auto")
    asked = migrate_source(only, options=Options("descriptor"))
    assert "x += x_desc.load([i, 0])" in asked.text
    assert migrate_source(asked.text, options=Options("descriptor")).text == asked.text
    (proof,) = prove(asked, limits=Limits(machine_code=0))
    assert proof.proven, str(proof)
