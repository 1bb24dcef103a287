"""What `--verify` tries and what it says: flags, sequences of different lengths, calls that never run, bad kernels."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from migrate_cases import case
from mltriton.errors import BackendError
from mltriton.tools.inference.roles import roles_of
from mltriton.tools.migrate import migrate_source, migrate_sources
from mltriton.tools.migrate.prove import trial
from mltriton.tools.migrate.prove.coverage import truth
from mltriton.tools.migrate.prove.loading import Loader
from mltriton.tools.migrate.prove.proof import Prover, prove
from mltriton.tools.migrate.prove.verdicts import Limits, Proof
from mltriton.tools.migrate.prove.workers import Task, find_guarded
from mltriton.tools.migrate.result import Result

TT = Limits(machine_code=0)
HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

VARLEN = (
    HEAD
    + """def scale(x, y, cu_seqlens, chunk_indices, T, N: tl.constexpr, BT: tl.constexpr, IS_VARLEN: tl.constexpr):
    i_t, i_b = tl.program_id(0), tl.program_id(1)
    if IS_VARLEN:
        i_n, i_t = tl.load(chunk_indices + i_t * 2), tl.load(chunk_indices + i_t * 2 + 1)
        bos, eos = tl.load(cu_seqlens + i_n), tl.load(cu_seqlens + i_n + 1)
        T = eos - bos
        p = tl.make_block_ptr(x + bos * N, (T, N), (N, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    else:
        p = tl.make_block_ptr(x + i_b * T * N, (T, N), (N, 1), (i_t * BT, 0), (BT, BT), (1, 0))
        bos = i_b * T
    o = tl.make_block_ptr(y + bos * N, (T, N), (N, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    tl.store(o, 2 * tl.load(p, boundary_check=(0, 1)), boundary_check=(0, 1))
"""
)


def proof_of(text: str, *, limits: Limits = TT, replaced: tuple[str, str] | None = None) -> Proof:
    result = migrate_source(text, "kernel.py")
    assert result.changed
    if replaced is not None:
        assert replaced[0] in result.text
        result = dataclasses.replace(result, text=result.text.replace(*replaced))
    (proof,) = prove(result, limits=limits)
    return proof


def test_both_values_of_a_flag_are_tried() -> None:
    proof = proof_of(VARLEN)
    assert proof.proven
    assert not proof.untried
    assert str(proof) == f"scale: proven on {proof.inputs} inputs (tt, not cpu)"


def test_a_constant_that_is_a_dtype_gets_one() -> None:
    proof = proof_of(
        HEAD
        + """def widen(x, y, M, N: tl.constexpr, BM: tl.constexpr, OUTPUT_DTYPE: tl.constexpr, acc_dtype: tl.constexpr):
    p = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (BM, BM), (1, 0))
    o = tl.make_block_ptr(y, (M, N), (N, 1), (0, 0), (BM, BM), (1, 0))
    wide = tl.load(p, boundary_check=(0, 1)).to(acc_dtype) * 3
    tl.store(o, wide.to(OUTPUT_DTYPE), boundary_check=(0, 1))
"""
    )
    assert proof.proven


def test_a_contiguous_stride_that_is_a_constant_is_one() -> None:
    proof = proof_of(
        HEAD
        + """def copy(x, y, M, N, str_m: tl.constexpr, str_n: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    p = tl.make_block_ptr(x, (M, N), (str_m, str_n), (0, 0), (BM, BN), order=(1, 0))
    o = tl.make_block_ptr(y, (M, N), (str_m, str_n), (0, 0), (BM, BN), order=(1, 0))
    tl.store(o, tl.load(p, boundary_check=(0, 1)), boundary_check=(0, 1))
"""
    )
    assert proof.proven


def test_a_mistake_for_sequences_of_different_lengths_is_found() -> None:
    proof = proof_of(VARLEN, replaced=("x + bos * N, (T, N)", "x + eos * N, (T, N)"))
    assert proof.differs
    assert "other bytes in y" in proof.reason
    assert "IS_VARLEN=True" in proof.reason


def test_arrays_of_sequences_belong_together() -> None:
    (function,) = (node for node in ast.parse(VARLEN).body if isinstance(node, ast.FunctionDef))
    roles = roles_of(function)
    assert roles.pointers == {"x": "numbers", "y": "numbers", "cu_seqlens": "bounds", "chunk_indices": "pairs"}
    result = migrate_source(VARLEN, "kernel.py")
    prover = Prover(result, None, TT)
    prover.prove("scale")
    values = next(given.values for given in prover.ran["scale"] if given.values["IS_VARLEN"])
    bounds, pairs = values["cu_seqlens"], values["chunk_indices"].reshape(-1, 2)
    lengths = np.diff(bounds)
    assert (lengths >= 0).all()
    assert (pairs[:, 1] * values["BT"] < lengths[pairs[:, 0]]).all()


def test_functions_are_looked_at_once_a_call_whatever_they_are_given() -> None:
    """Twelve arguments through seven functions are 12**7 ways to the store."""
    names = ", ".join(["out", *(f"a{i}" for i in range(11))])
    text = HEAD + f"def f0({names}):\n    tl.store(out + a0, a1)\n"
    text += "".join(f"\n\n@triton.jit\ndef f{i + 1}({names}):\n    f{i}({names})\n" for i in range(7))
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    roles = roles_of(functions["f7"], functions)
    assert set(roles.pointers) == roles.stored == {"out"}


def test_a_call_that_no_input_reaches_is_not_proven() -> None:
    text = VARLEN.replace(
        "    tl.store(o",
        "    if T > 100000:\n        o = tl.advance(o, (1, 0))\n        tl.store(o, tl.load(p))\n    tl.store(o",
    )
    proof = proof_of(text)
    assert proof.verdict == "partly proven"
    assert proof.missed == {"scale": (18, 19)}
    assert str(proof).endswith(": the calls at lines 18, 19 never ran")


def test_a_call_that_reaches_no_element_does_not_count() -> None:
    empty = "    q = tl.make_block_ptr(y, (0, N), (N, 1), (0, 0), (BT, BT), (1, 0))\n"
    store = "    tl.store(q, tl.load(p), boundary_check=(0, 1))\n"
    proof = proof_of(VARLEN.replace("    tl.store(o", f"{empty}{store}    tl.store(o"))
    assert proof.verdict == "partly proven"
    assert 18 in proof.missed["scale"]


def test_a_step_counts_only_when_it_is_used() -> None:
    once = HEAD + (
        "def steps(x, y, N, B: tl.constexpr):\n"
        "    p = tl.make_block_ptr(x, (N, N), (N, 1), (0, 0), (B, B), (1, 0))\n"
        "    o = tl.make_block_ptr(y, (N, N), (N, 1), (0, 0), (B, B), (1, 0))\n"
        "    for i in range(0, LAST, B):\n"
        "        tl.store(o, tl.load(p, boundary_check=(0, 1)), boundary_check=(0, 1))\n"
        "        p = tl.advance(p, (B, 0))\n"
    )
    assert proof_of(once.replace("LAST", "N")).proven
    proof = proof_of(once.replace("LAST", "B"))
    assert proof.missed == {"steps": (11,)}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("A", True),
        ("not A", False),
        ("A and n > 3", None),
        ("not A and n > 3", False),
        ("A or n", True),
        ("K > 64", None),
        ("B == 'x'", True),
        ("f(A)", None),
    ],
)
def test_conditions_are_known_as_far_as_constants_say(test: str, expected: bool | None) -> None:
    assert truth(ast.parse(test, mode="eval").body, {"A": True, "B": "x"}) is expected


def test_machine_code_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fn: object, given: object) -> None:
        raise BackendError("no machine code today")

    monkeypatch.setattr(trial, "run_machine_code", fail)
    proof = proof_of(VARLEN, limits=Limits())
    assert proof.proven
    assert str(proof).endswith("(tt, not cpu: BackendError: no machine code today)")


def test_machine_code_that_differs_is_wrong_unless_the_old_kernel_differs_from_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def outcomes(*values: int) -> trial.Outcome:
        return trial.Outcome({"y": np.array(values)}, wrote=True)

    given = trial.Input({}, (1,))
    runs = iter([outcomes(1), outcomes(2), outcomes(1), outcomes(1)])
    monkeypatch.setattr(trial, "run_machine_code", lambda fn, given: next(runs))
    assert trial.compare_machine_code(None, None, given) == ("y", "")
    runs = iter([outcomes(1), outcomes(2), outcomes(3), outcomes(1)])
    name, skipped = trial.compare_machine_code(None, None, given)
    assert name is None
    assert "the old kernel writes other bytes each time" in skipped


def guarded(text: str, limits: Limits) -> Proof:
    (proof,) = find_guarded(Task(migrate_source(text, "kernel.py"), limits=limits)).proofs
    return proof


def test_a_kernel_that_does_not_end_is_stopped() -> None:
    text = VARLEN.replace("    tl.store(o", "    n = T\n    while n > 0:\n        n = n * 1\n    tl.store(o")
    proof = guarded(text, Limits(machine_code=0, seconds=1, margin=4))
    assert (proof.verdict, proof.reason) == ("not runnable", "it did not end within 5 s")


def test_a_process_that_dies_is_noticed_and_the_next_kernel_is_proven() -> None:
    die = "DIES = __import__('os')._exit(3)\n"
    text = VARLEN.replace("@triton.jit", f"{die}\n\n@triton.jit").replace("2 * tl.load", "DIES * tl.load")
    assert guarded(text, TT).reason == "the process ended with 3"


def test_only_what_kernels_need_is_executed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "constants.py").write_text(f"open({str(marker)!r}, 'w')\nx = open({str(marker)!r}, 'w')\nTWO = 2\n")
    text = VARLEN.replace(
        "import triton\n", f"import triton\nimport torch\nfrom constants import TWO\nlog = open({str(marker)!r}, 'w')\n"
    )
    names = Loader().load(text.replace("2 * tl.load", "TWO * tl.load"), tmp_path / "kernel.py", "kernel.py")
    assert names["TWO"] == 2
    assert "log" not in names
    assert not marker.exists()


def test_a_missing_package_is_named() -> None:
    text = VARLEN.replace("import triton\n", "import triton\nfrom other.ops import double\n", 1).replace(
        "2 * tl", "double * tl"
    )
    proof = proof_of(text)
    assert proof.verdict == "not runnable"
    assert proof.reason.endswith("double is not known: other.ops is not loaded")


def test_a_helper_is_proven_through_its_callers() -> None:
    result: Result = migrate_source(case("rule_12_attention")[0])
    found = {proof.kernel: str(proof) for proof in prove(result, limits=TT)}
    assert found["inner"] == found["attn"].replace("attn: proven", "inner: proven through attn")


HELPER = """import triton
import triton.language as tl


@triton.jit
def part(x, y, s_t, s_d, T, D, i_t, BT: tl.constexpr, BD: tl.constexpr):
    p_x = tl.make_block_ptr(x, (T, D), (s_t, s_d), (i_t * BT, 0), (BT, BD), (1, 0))
    p_y = tl.make_block_ptr(y, (T, D), (s_t, s_d), (i_t * BT, 0), (BT, BD), (1, 0))
    tl.store(p_y, tl.load(p_x, boundary_check=(0, 1)), boundary_check=(0, 1))


@triton.jit
def between(x, y, s_t, s_d, T, D, i_t, BT: tl.constexpr, BD: tl.constexpr):
    {call}


@triton.jit
def outer(x, y, s_t, s, T, D, BT: tl.constexpr, BD: tl.constexpr):
    between(x, y, s_t, s, T, D, tl.program_id(0), BT, BD)
"""


@pytest.mark.parametrize(
    "call", ["part(x, y, s_t, s_d, T, D, i_t, BT, BD)", "part(x, y, s_t, i_t=i_t, BD=BD, BT=BT, D=D, T=T, s_d=s_d)"]
)
def test_a_contiguous_stride_is_one_through_every_call(call: str) -> None:
    for proof in prove(migrate_source(HELPER.format(call=call)), limits=TT):
        assert proof.proven, str(proof)


def test_a_contiguous_stride_is_one_through_calls_into_other_files(tmp_path: Path) -> None:
    text = HELPER.format(call="ops.part(x, y, s_t, s_d, T, D, i_t, BT, BD)")
    helper, caller = text.split("@triton.jit\ndef between")
    (tmp_path / "ops.py").write_text(helper)
    path = tmp_path / "kernels.py"
    head = "import ops\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef between"
    made = "    q = tl.make_block_ptr(y, (T,), (1,), (0,), (BT,), (0,))\n"
    made += "    tl.store(q, tl.zeros((BT,), tl.float32), boundary_check=(0,))\n    ops.part"
    texts = {str(path): head + caller.replace("    ops.part", made), str(tmp_path / "ops.py"): helper}
    results = migrate_sources(texts)
    for proof in prove(results[str(path)], limits=TT):
        assert proof.proven, str(proof)


@pytest.mark.parametrize(
    "imports",
    [
        "from vllm.triton_utils import tl, triton",
        "from package.compat import triton\nfrom package.compat import triton_language as tl",
        "from package import triton\ntl = triton.language",
    ],
)
def test_packages_that_pass_triton_on_are_seen_through(imports: str) -> None:
    text = HELPER.format(call="part(x, y, s_t, s_d, T, D, i_t, BT, BD)")
    text = text.replace("import triton\nimport triton.language as tl", imports)
    result = migrate_source(text)
    assert "make_block_ptr" not in result.text
    assert all(proof.proven for proof in prove(result, limits=TT))
