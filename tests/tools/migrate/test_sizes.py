"""Rows of fewer than 16 bytes: what the given files show of the sizes that kernels are launched with."""

import pytest

from mltriton.tools.migrate import Options, Result, migrate_source, migrate_sources
from mltriton.tools.migrate.prove.proof import prove
from mltriton.tools.migrate.prove.verdicts import Limits
from mltriton.tools.migrate.read.sizes import Sizes

HEAD = """import triton
import triton.language as tl

SIZES = [32, 64] if triton.runtime else [16, 32]
SMALL = (8, 16)
"""
KERNEL = """

{decorators}@triton.jit
def kernel(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM
    p = tl.make_block_ptr(x, (M, N), (N, 1), (i, 0), (BM, BN), (1, 0))
    q = tl.make_block_ptr(y, (M, N), (N, 1), (i, 0), (BM, BN), (1, 0))
    tl.store(q, 2 * tl.load(p, boundary_check=(0, 1)), boundary_check=(0, 1))
"""
HOST = """

def run(x, y, M, N, size=64):
    {before}
    kernel[(8,)](x, y, M, N, 32{passed})
"""
CHOSEN = "\n\ndef chosen(n):\n    if n > 3:\n        return 64\n    return 32\n"
MORE = "\n\ndef more(x, y):\n    run(x, y, 3, 4, size=32)\n    run(x, y, 3, 4)\n"


def text(before: str = "pass", passed: str = ", BN=BN", decorators: str = "", after: str = "") -> str:
    return HEAD + KERNEL.format(decorators=decorators) + HOST.format(before=before, passed=passed) + after


@pytest.mark.parametrize(
    ("changes", "least"),
    [
        ({"before": "BN = 64"}, 64),
        ({"passed": ", 64"}, 64),
        ({"passed": ", 8"}, 8),
        ({"passed": ", *M, BN=64"}, 64),
        ({"passed": ", 64, *M"}, 64),
        ({"passed": ", BN=64, **M"}, 64),
        ({"passed": ", *M"}, None),
        ({"passed": ", **M"}, None),
        ({"before": "BN = triton.next_power_of_2(N)"}, 1),
        ({"before": "BN = max(16, triton.next_power_of_2(N))"}, 16),
        ({"before": "BN = max(triton.next_power_of_2(N), 16)"}, 16),
        ({"before": "BN = min(64, triton.next_power_of_2(N))"}, 1),
        ({"before": "assert N >= 16; BN = min(64, triton.next_power_of_2(N))"}, 16),
        ({"before": "assert N in (32, 64, 128); BN = triton.next_power_of_2(N)"}, 32),
        ({"before": "assert N > 16 and M > 0; BN = triton.next_power_of_2(N)"}, 32),
        ({"before": "BN = 64 if M > 8 else 16"}, 16),
        ({"before": "BN = 64 if M > 8 else N"}, None),
        ({"before": "BN, other = 32, N"}, 32),
        ({"before": "BN, other = N.shape"}, None),
        ({"before": "BN = 16; BN *= N"}, None),
        ({"before": "BN = 8 * 2 + 4"}, 20),
        ({"before": "BN = 64 // N"}, None),
        (
            {
                "before": "BN = chosen(N)",
                "after": "\n\ndef chosen(n):\n    if n > 3:\n        return 64\n    return 32\n",
            },
            32,
        ),
        ({"before": "for BN in (16, 32): print(BN)"}, 16),
        ({"passed": ", BN=SIZES[0]"}, 16),
        ({"passed": ", BN=size"}, None),
        (
            {
                "passed": ", BN=size",
                "after": "\n\ndef more(x, y):\n    run(x, y, 3, 4, size=32)\n    run(x, y, 3, 4)\n",
            },
            32,
        ),
        ({"passed": ", BN=size", "after": "\n\ndef more(x, y, n):\n    run(x, y, 3, 4, size=n)\n"}, None),
        ({"passed": ", **how"}, None),
        ({"passed": "", "decorators": "@triton.autotune([triton.Config({'BN': BN}) for BN in SIZES], key=[])\n"}, 16),
        ({"passed": "", "decorators": "@triton.autotune([triton.Config({'BN': b}) for b in SMALL], key=[])\n"}, 8),
        (
            {
                "passed": "",
                "decorators": "@triton.autotune([triton.Config({'BN': 16}), triton.Config({'BN': 64})], key=[])\n",
            },
            16,
        ),
        (
            {
                "passed": "",
                "decorators": "@triton.heuristics({'BN': lambda args: max(16, triton.next_power_of_2(args['N']))})\n",
            },
            16,
        ),
        (
            {
                "passed": "",
                "decorators": "@triton.heuristics({'BN': lambda args: 2 * args['BM']})\n",
            },
            64,
        ),
        ({"before": "BN = 64", "after": "\n\ndef keep():\n    return kernel\n"}, None),
    ],
)
def test_the_least_size(changes: dict[str, str], least: int | None) -> None:
    found = text(**changes)
    assert Sizes({"k.py": found}).least("k.py", "kernel", "BN") == least
    result = migrate_source(found, "k.py")
    assert ("make_tensor_descriptor" in result.text) == (least is not None and least >= 16)
    assert "static_assert" not in result.text


def test_launches_in_other_files_count() -> None:
    kernel, host = text("BN = 64").split("\n\ndef run")
    texts = {"kernels.py": kernel, "host.py": f"from kernels import kernel\n\n\ndef run{host}"}
    assert "make_tensor_descriptor" in migrate_sources(texts)["kernels.py"].text
    launchers = {"host.py": texts["host.py"].replace("BN = 64", "BN = triton.next_power_of_2(N)")}
    assert "tl.store" in migrate_sources({"kernels.py": kernel}, launchers=launchers)["kernels.py"].text


def test_sizes_go_through_calls_of_helpers() -> None:
    helper = KERNEL.format(decorators="").replace("def kernel(", "def inner(")
    outer = "\n\n@triton.jit\ndef kernel(x, y, M, N, B: tl.constexpr):\n    inner(x, y, M, N, 16, 2 * B)\n"
    host = "\n\ndef run(x, y):\n    kernel[(1,)](x, y, 4, 5, B={size})\n"
    for size, expected in (("8", True), ("4", False)):
        found = migrate_source(HEAD + helper + outer + host.format(size=size))
        assert ("make_tensor_descriptor" in found.text) == expected


DOT = """import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    p_a = tl.make_block_ptr(a, (M, K), (K, 1), (0, 0), (BM, BK), (1, 0))
    p_b = tl.make_block_ptr(b, (N, K), (K, 1), (0, 0), (BN, BK), (1, 0))
    p_c = tl.make_block_ptr(c, (M, N), {strides}, (0, 0), (BM, BN), {order})
    x = tl.load(p_a, boundary_check=(0, 1)).to(tl.float32) * 2
    y = tl.trans(tl.load(p_b, boundary_check=(0, 1)))
    tl.store(p_c, tl.dot(x, y), boundary_check=(0, 1))
"""


def asserts(result: Result) -> list[str]:
    return [line.strip() for line in result.text.splitlines() if "static_assert" in line]


def test_what_a_dot_multiplies_is_large_enough() -> None:
    assert asserts(migrate_source(DOT.format(strides="(N, 1)", order="(1, 0)"))) == []
    rows = asserts(migrate_source(DOT.format(strides="(1, M)", order="(0, 1)")))
    assert rows == ["tl.static_assert(BM * c.dtype.element_ty.primitive_bitwidth >= 128)"]


def test_without_launches_a_condition_is_stated_and_asserted() -> None:
    result = migrate_source(HEAD + KERNEL.format(decorators=""), "k.py")
    assert len(asserts(result)) == 2
    assert ["rows of BN elements must have 16 bytes" in note.text for note in result.of_kind("condition")] == [True] * 2
    (proof,) = prove(result, limits=Limits(machine_code=0), signature="*fp16, *fp16, i32, i32, 16, 4")
    assert proof.verdict == "not runnable"
    assert "condition does not hold" in proof.reason


def test_a_descriptor_that_was_asked_for_is_asserted() -> None:
    result = migrate_source(text("BN = triton.next_power_of_2(N)"), options=Options("descriptor"))
    assert len(asserts(result)) == 2
