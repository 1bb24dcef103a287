"""What is written once, and what is not: descriptors that may not be there, values that change, the user's own code."""

import pytest

from mltriton.tools.migrate import migrate_source
from mltriton.tools.migrate.prove.proof import prove
from mltriton.tools.migrate.prove.verdicts import Limits

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x, y, M, N, FIRST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    tl.static_assert(BM >= 16 and BN >= 16)
    i = tl.program_id(0) * BM
    acc = tl.zeros((BM, BN), tl.float32)
{body}
    o = tl.make_block_ptr(y, (M, N), (N, 1), (i, 0), (BM, BN), (1, 0))
    tl.store(o, acc, boundary_check=(0, 1))
"""
P = "tl.make_block_ptr(x, (M, N), (N, 1), ({rows}, {columns}), (BM, BN), (1, 0))"
LOAD = "acc += tl.load({name}, boundary_check=(0, 1))"


def made(name: str, rows: str = "i", columns: str = "0") -> str:
    return f"{name} = {P.format(rows=rows, columns=columns)}"


def loaded(name: str) -> str:
    return LOAD.format(name=name)


def text(*lines: str) -> str:
    return KERNEL.format(body="\n".join(f"    {line}" for line in lines))


@pytest.mark.parametrize(
    ("lines", "descriptors"),
    [
        ([made("p"), loaded("p"), made("q", "i + 1"), loaded("q")], 1),
        ([made("p"), loaded("p"), made("p", "i + 1"), loaded("p")], 1),
        (["if FIRST:", f"    {made('p')}", f"    {loaded('p')}", made("q", "i + 1"), loaded("q")], 2),
        (["if FIRST:", f"    {made('p')}", f"    {loaded('p')}", made("p", "i + 1"), loaded("p")], 2),
        ([made("p"), loaded("p"), "x += N", made("q"), loaded("q")], 2),
        ([made("p"), loaded("p"), "N = N - 1", made("p"), loaded("p"), "N = N + 1"], 2),
        (
            [
                made("p"),
                "for k in range(3):",
                f"    {loaded('p')}",
                f"    {made('q', 'i', 'k')}",
                f"    {loaded('q')}",
            ],
            1,
        ),
        (
            ["for k in range(2):", f"    {made('p', 'i', 'k')}", f"    {loaded('p')}", made("q"), loaded("q")],
            2,
        ),
        (
            ["for k in range(2):", f"    {made('p', 'i', 'k')}", f"    {loaded('p')}", "    x += 1"],
            1,
        ),
    ],
)
def test_a_descriptor_is_shared_only_where_it_certainly_is_there(lines: list[str], descriptors: int) -> None:
    result = migrate_source(text(*lines))
    assert result.text.count("make_tensor_descriptor") == descriptors + 1, result.text
    (proof,) = prove(result, limits=Limits(machine_code=0, inputs=8))
    assert proof.proven, str(proof)


def test_counters_that_run_apart_stay_apart() -> None:
    step = "p, q = tl.advance(p, (0, BN)), tl.advance(q, (0, 2 * BN))"
    result = migrate_source(
        text(made("p"), made("q"), "for k in range(2):", f"    {loaded('p')}", f"    {loaded('q')}", f"    {step}")
    )
    assert "off_p" in result.text
    assert "off_q" in result.text
    (proof,) = prove(result, limits=Limits(machine_code=0))
    assert proof.proven, str(proof)


def test_what_the_user_wrote_twice_stays() -> None:
    own = ["if FIRST:", "    acc += 1", "else:", "    acc += 1", "k0 = i + 1", "k1 = i + 1", "acc += k0 + k1"]
    result = migrate_source(text(*own))
    for line in own:
        assert f"    {line}\n" in result.text
