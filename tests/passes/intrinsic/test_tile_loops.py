"""Blocks in memory: every level and machine code agree, and the loops have the shape that makes them fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from combinations import each_pair, each_value
from mltriton.compiler import compile
from mltriton.dialects import arith, math, scf, tile, tt
from mltriton.errors import TargetError
from mltriton.executor import to_bfloat16
from mltriton.frontend.function import LanguageFunction
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.parser import parse_module
from mltriton.ir.types import TensorType
from mltriton.kernels import attention, normalization
from mltriton.passes.intrinsic.tile_loops.operations import OPERATIONS, rule_of
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.tools.verify import verify_kernel
from processors import WIDTHS

from . import block_kernels

Array = np.ndarray[Any, Any]
SHAPES = [(4, 16), (8, 64), (2, 256), (16, 4), (1, 128), (32, 2), (4, 512)]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)


def agree(kernel: LanguageFunction, args: dict[str, Any], target: str = "cpu") -> None:
    """Every level gives the same, and no level reads scratch memory that nothing has written."""
    result = verify_kernel(kernel, args=args, grid=(1,), target=target, uninitialised=True)
    assert result.ok, str(result)


def floats(rng: np.random.Generator, *shape: int) -> Array:
    """Random f32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_rows(shape: tuple[int, int], rng: np.random.Generator) -> None:
    m, n = shape
    x = floats(rng, m, n)
    out = {"y": np.zeros_like(x), "largest": np.zeros(m, "f"), "where": np.zeros(m, "i4"), "columns": np.zeros(n, "f")}
    agree(block_kernels.rows, {"x": x, **out, "M": m, "N": n})


@pytest.mark.parametrize("shape", SHAPES)
def test_scans_along_every_dimension(shape: tuple[int, int], rng: np.random.Generator) -> None:
    x = floats(rng, *shape)
    out = {name: np.zeros_like(x) for name in ("along", "back", "down")}
    agree(block_kernels.running, {"x": x, **out, "M": shape[0], "N": shape[1]})


@pytest.mark.parametrize("n", [2, 16, 64, 512])
def test_a_scan_of_pairs(n: int, rng: np.random.Generator) -> None:
    x, y = floats(rng, n) * 0.5, floats(rng, n)
    agree(block_kernels.recurrence, {"x": x, "y": y, "z": np.zeros(n, "f"), "N": n})


@pytest.mark.parametrize("n", [4, 64])
def test_combinations_with_control_flow(n: int, rng: np.random.Generator) -> None:
    x = floats(rng, n) - 1.0
    agree(block_kernels.branching, {"x": x, "y": np.zeros(1, "f"), "z": np.zeros(n, "f"), "N": n})


@pytest.mark.parametrize("shape", SHAPES)
def test_rearranged_elements(shape: tuple[int, int], rng: np.random.Generator) -> None:
    m, n = shape
    x = floats(rng, m, n)
    out = {"flat": np.zeros(m * n, "f"), "pairs": np.zeros_like(x), "both": np.zeros(2 * m, "f")}
    agree(block_kernels.shapes, {"x": x, **out, "M": m, "N": n})


@pytest.mark.parametrize("n", [4, 128, 1024])
def test_loads_that_a_store_would_spoil(n: int, rng: np.random.Generator) -> None:
    agree(block_kernels.swap, {"x": floats(rng, n), "y": floats(rng, n), "N": n})
    agree(block_kernels.rotate, {"x": floats(rng, 2 * n), "N": n})


@pytest.mark.parametrize("shape", SHAPES)
def test_places_that_reductions_give(shape: tuple[int, int], rng: np.random.Generator) -> None:
    m, n = shape
    out = {"y": np.zeros((2, m, n), "f"), "z": np.zeros((n, m, 2), "f")}
    agree(block_kernels.places_from_sums, {"x": floats(rng, m, n), **out, "table": floats(rng, n, n), "M": m, "N": n})


@pytest.mark.parametrize("n", [16, 64])
def test_dots_of_places_that_reductions_give(n: int, rng: np.random.Generator) -> None:
    agree(block_kernels.dot_of_places_from_sums, {"x": floats(rng, n, n), "y": np.zeros((n, n), "f"), "N": n})


@pytest.mark.parametrize("n", [16, 128])
@pytest.mark.parametrize("steps", [0, 1, 3, 4])
def test_pointers_that_loops_change(n: int, steps: int, rng: np.random.Generator) -> None:
    x, y = floats(rng, n + 16), np.zeros(n, "f")
    wanted, at = x.copy(), 8
    for _ in range(steps):
        wanted[16 : 16 + n] = wanted[at + 8 : at + 8 + n] + 1
        wanted[at] = wanted[16] * 2
        at -= 1
    args = {"x": x.copy()[8:], "y": y, "n": steps, "N": n}
    block_kernels.moving_pointer[(1,)](*args.values())
    np.testing.assert_array_equal(y, wanted[8 : 8 + n])
    x, y, out = floats(rng, n + 1), floats(rng, n + 1), np.zeros((4, n), "f")
    agree(block_kernels.exchanged_pointers, {"x": x, "y": y, "out": out, "n": steps, "N": n})


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_tiles_that_every_iteration_reads(steps: int, rng: np.random.Generator) -> None:
    x = (floats(rng, 128) * 0.125).astype("f")
    agree(block_kernels.kept_for_every_iteration, {"x": x, "y": np.zeros(128, "f"), "n": steps, "N": 128})


@pytest.mark.parametrize("size", [(32, 32, 32), (32, 32, 31), (31, 32, 32), (32, 17, 32), (5, 3, 7)])
def test_dots_of_operands_that_end_early(size: tuple[int, int, int], rng: np.random.Generator) -> None:
    m, n, k = size
    args = {"a": floats(rng, m, k), "b": floats(rng, k, n), "c": np.zeros((m, n), "f"), "m": m, "n": n, "k": k, "S": 32}
    agree(block_kernels.masked_dot, args)


@pytest.mark.parametrize("n", [16, 1024])
def test_loads_of_what_was_stored(n: int, rng: np.random.Generator) -> None:
    agree(block_kernels.stored_then_loaded, {"x": floats(rng, n), "y": floats(rng, n), "N": n})


@pytest.mark.parametrize("n", [16, 1024])
def test_one_array_for_two_parameters(n: int, rng: np.random.Generator) -> None:
    x, z = floats(rng, n), np.zeros(n, "f")
    before = x.copy()
    block_kernels.doubled[(1,)](x, x, z, n)
    np.testing.assert_array_equal(x, before * 2)
    np.testing.assert_array_equal(z, before[::-1])


@pytest.mark.parametrize(("low", "high"), [(-3, 2), (-5, -2), (2, -2)])
def test_counters_below_zero(low: int, high: int, rng: np.random.Generator) -> None:
    args = {"x": floats(rng, 64), "y": np.zeros(64, "f"), "low": low, "high": high, "N": 64}
    agree(block_kernels.counted_from_below, args)


@pytest.mark.parametrize("n", [16, 64])
def test_a_store_that_would_spoil_its_own_loads(n: int, rng: np.random.Generator) -> None:
    agree(block_kernels.transpose_in_place, {"x": floats(rng, n, n), "N": n})


@each_value(("steps", [0, 1, 2, 5]), ("n", [4, 128, 1024]))
def test_carried_blocks(n: int, steps: int, rng: np.random.Generator) -> None:
    agree(block_kernels.carried, {"x": floats(rng, 5, n), "y": np.zeros(n, "f"), "n": steps, "N": n})


@pytest.mark.parametrize("steps", [0, 3])
def test_a_block_computed_from_other_elements_of_itself(steps: int, rng: np.random.Generator) -> None:
    agree(block_kernels.reversed_in_loop, {"x": floats(rng, 16, 16), "y": np.zeros((16, 16), "f"), "n": steps, "N": 16})


@pytest.mark.parametrize("shape", [(4, 16), (2, 256)])
def test_gathers_and_atomics(shape: tuple[int, int], rng: np.random.Generator) -> None:
    m, n = shape
    x, index = floats(rng, m, n), rng.integers(0, n, shape).astype("i4")
    args = {"x": x, "index": index, "y": np.zeros_like(x), "total": np.ones(n, "f"), "M": m, "N": n}
    agree(block_kernels.picked, args)


@pytest.mark.parametrize(("m", "n"), [(5, 7), (16, 32), (40, 33)])
def test_windows_over_the_edges(m: int, n: int, rng: np.random.Generator) -> None:
    x = floats(rng, m, n)
    agree(block_kernels.windows, {"x": x, "y": np.zeros_like(x), "m": m, "n": n, "M": 8, "N": 16})


DTYPES = {"f4": "f4", "f8": "f8", "f2": "f4", "i1": "i4", "bf16": "f4"}


@each_pair(
    ("size", [(16, 16, 16), (32, 64, 16), (1, 1, 1), (2, 8, 32), (64, 16, 128)]),
    ("transposed", [(False, False), (True, False), (False, True)]),
    ("dtype", DTYPES),
)
def test_dots(dtype: str, transposed: tuple[bool, bool], size: tuple[int, int, int], rng: np.random.Generator) -> None:
    m, n, k = size
    left, right = transposed
    a, b = (_numbers(rng, dtype, shape) for shape in ((m, k), (k, n)))
    args: dict[str, Any] = {"a": a, "b": b, "c": np.zeros((m, n), DTYPES[dtype])}
    if dtype == "bf16":
        pytest.importorskip("torch")
        args |= {"a": _as_torch(a), "b": _as_torch(b)}
    agree(block_kernels.product, {**args, "M": m, "N": n, "K": k, "LEFT": left, "RIGHT": right})


def _numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    if dtype == "i1":
        return rng.integers(-128, 128, shape).astype("i1")
    numbers = rng.standard_normal(shape)
    return to_bfloat16(numbers.astype("f")) if dtype == "bf16" else numbers.astype(dtype)


def _as_torch(bits: Array) -> Any:
    import torch

    return torch.from_numpy(bits.view(np.int16).copy()).view(torch.bfloat16)


@pytest.mark.parametrize("dtype", ["f2", "bf16", "i1"])
@pytest.mark.parametrize("size", [(32, 64, 64), (2, 8, 32), (16, 64, 8)])
def test_operands_in_groups_transposed_for_a_processor_that_may_be_elsewhere(
    dtype: str, size: tuple[int, int, int], rng: np.random.Generator
) -> None:
    """Pairs and quads move together; every level that needs no processor gives the same."""
    m, n, k = size
    a, b = (_numbers(rng, dtype, shape) for shape in ((m, k), (k, n)))
    args: dict[str, Any] = {"a": a, "b": b, "c": np.zeros((m, n), DTYPES[dtype]), "M": m, "N": n, "K": k}
    if dtype == "bf16":
        pytest.importorskip("torch")
        args |= {"a": _as_torch(a), "b": _as_torch(b)}
    args |= {"LEFT": False, "RIGHT": True}
    result = verify_kernel(block_kernels.product, args=args, grid=(1,), target="cpu:amx-fp16", uninitialised=True)
    levels = {level.name: level for level in result.levels}
    assert all(levels[name].ok for name in ("tt", "ttg", "warp", "intrinsic")), str(result)


@pytest.mark.parametrize("target", WIDTHS)
@pytest.mark.parametrize("dtype", ["f4", "i1"])
def test_dots_on_every_instruction_set(target: str, dtype: str, rng: np.random.Generator) -> None:
    a, b = (_numbers(rng, dtype, (64, 64)) for _ in range(2))
    args = {"a": a, "b": b, "c": np.zeros((64, 64), DTYPES[dtype]), "M": 64, "N": 64, "K": 64}
    agree(block_kernels.product, {**args, "LEFT": False, "RIGHT": True}, target)


@pytest.mark.parametrize(("m", "n"), [(16, 32), (13, 29), (3, 1)])
@pytest.mark.parametrize("block", [(16, 32), (64, 4), (4, 64), (32, 2)])
def test_stores_along_columns(m: int, n: int, block: tuple[int, int], rng: np.random.Generator) -> None:
    m, n = min(m, block[0]), min(n, block[1])
    args = {"x": floats(rng, m, n), "y": np.zeros(m * n, "f"), "z": np.zeros(m * n, "f"), "m": m, "n": n}
    agree(block_kernels.transposed, {**args, "M": block[0], "N": block[1]})


@pytest.mark.parametrize("target", WIDTHS)
def test_masks_on_every_instruction_set(target: str, rng: np.random.Generator) -> None:
    for m, n in ((16, 32), (40, 33)):
        args = {"x": floats(rng, m, n), "y": np.zeros((m, n), "f"), "m": m, "n": n, "M": 8, "N": 16}
        agree(block_kernels.windows, args, target)
    for n in (1000, 1024):
        x = floats(rng, n)
        args = {"x": x, "y": np.zeros_like(x), "total": np.zeros(1, "f"), "n": n, "N": 1024}
        agree(block_kernels.masked, args, target)
        agree(block_kernels.normalized, {"x": x, "y": np.zeros_like(x), "n": n, "N": 1024}, target)


def test_batched_dots(rng: np.random.Generator) -> None:
    a, b = floats(rng, 2, 16, 32), floats(rng, 2, 32, 8)
    agree(block_kernels.batched, {"a": a, "b": b, "c": np.zeros((2, 16, 8), "f"), "B": 2, "M": 16, "N": 8, "K": 32})


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_accumulators_that_are_needed_elsewhere(steps: int, rng: np.random.Generator) -> None:
    a, b = floats(rng, 16, 16), floats(rng, 16, 16)
    agree(block_kernels.chained, {"a": a, "b": b, "c": np.zeros((16, 16), "f"), "n": steps, "N": 16})


@each_pair(("stored", [False, True]), ("dtype", ["f4", "bf16"]), ("target", ["cpu", *WIDTHS]))
def test_operands_that_share_expensive_values(stored: bool, dtype: str, target: str, rng: np.random.Generator) -> None:
    x, y = (_numbers(rng, dtype, (32, 16)) for _ in range(2))
    if dtype == "bf16":
        pytest.importorskip("torch")
        x, y = _as_torch(x), _as_torch(y)
    args = {"x": x, "y": y, **{out: np.zeros((32, 16), "f") for out in "pde"}}
    args["f"] = np.zeros((32, 32), "f") if stored else None
    agree(block_kernels.sharing, {**args, "M": 32, "N": 16}, target)


# The shape of the result


def _intrinsic(
    kernel: LanguageFunction, signature: dict[str, str], target: str = "cpu:avx512", **constants: Any
) -> Module:
    return compile(kernel, signature, constants, target=target).job.module("intrinsic")


def _loops(block_of: Operation) -> list[scf.For]:
    """The loops directly inside an operation."""
    return [op for region in block_of.regions for op in region.block.ops if isinstance(op, scf.For)]


def _number(value: Value) -> int:
    op = value.defining_op
    assert isinstance(op, arith.Constant) and isinstance(op.value, IntegerAttr)
    return op.value.value


def _count(op: Operation, cls: type[Operation]) -> int:
    return sum(isinstance(inner, cls) for inner in op.walk())


def _chunks(op: Operation, cls: type[Operation]) -> int:
    return sum(isinstance(inner, cls) and isinstance(inner.results[0].type, TensorType) for inner in op.walk())


@pytest.mark.parametrize(
    ("element", "result", "message"),
    [
        ("f32", "f64", "sums products of f32 in fewer bits\nexpected f32, found f64"),
        ("i8", "i64", "sums products of i8 in fewer bits\nexpected i32, found i64"),
        ("i64", "i64", "has no dot of i64 elements\nexpected f32, f64, f16, .*, i8, i16, i32, found i64"),
    ],
)
def test_dots_that_no_micro_kernel_computes(element: str, result: str, message: str) -> None:
    """Only a program that is loaded has them."""
    zeros = {"i": "dense<0>", "f": "dense<0.0>"}
    text = f"""
        module attributes {{mltriton.level = "warp", ttg.target = "cpu:avx512"}} {{
          tt.func @f(%p: !tt.ptr<{result}>) {{
            %x = arith.constant {zeros[element[0]]} : tensor<8x8x{element}>
            %c = arith.constant {zeros[result[0]]} : tensor<8x8x{result}>
            %d = tt.dot %x, %x, %c : tensor<8x8x{element}> * tensor<8x8x{element}> -> tensor<8x8x{result}>
            tt.return
          }}
        }}"""
    with pytest.raises(TargetError, match=message):
        PassManager(parse_pipeline("match-target-size"), verify_each=False).run(parse_module(text))


def test_an_operation_without_a_rule_that_computes_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one meets who adds an operation."""
    monkeypatch.delitem(OPERATIONS, tt.Reshape)
    rule_of.cache_clear()
    text = """
        module attributes {mltriton.level = "warp", ttg.target = "cpu:avx2"} {
          tt.func @f(%p: !tt.ptr<i32>) {
            %x = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
            %y = tt.reshape %x : tensor<64xi32> -> tensor<8x8xi32>
            %q = tt.splat %p : !tt.ptr<i32> -> tensor<8x8x!tt.ptr<i32>>
            tt.store %q, %y : tensor<8x8x!tt.ptr<i32>>
            tt.return
          }
        }"""
    try:
        with pytest.raises(TargetError, match=r"tt\.reshape computes where its elements are, and has no rule"):
            PassManager(parse_pipeline("form-nests,match-target-size"), verify_each=False).run(parse_module(text))
    finally:
        rule_of.cache_clear()


def test_softmax_is_three_loops_and_computes_exp_once() -> None:
    import mltriton.language as tl

    integers = dict.fromkeys(("x_stride", "y_stride", "n_columns"), "i32")
    signature = {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", **integers}
    module = _intrinsic(normalization.softmax_kernel, signature, FLOAT=tl.float32, BLOCK=1024)
    function = module.body.block.ops[0]
    loops = _loops(function)  # maximum, total and quotient, each split where the masks end
    assert [_count(loop, math.Exp) for loop in loops] == [0, 0, 4, 1, 0, 0]
    assert [_count(loop, tile.Store) for loop in loops] == [0, 0, 4, 1, 4, 1]
    assert not any(isinstance(op, tt.Load) for op in function.walk())


@pytest.mark.parametrize(
    ("dtype", "target"),
    [("fp32", "cpu:avx512"), ("bf16", "cpu:avx512-bf16"), ("bf16", "cpu:avx512"), ("fp16", "cpu:avx2")],
)
def test_operands_that_share_an_exponential_are_filled_in_one_nest(dtype: str, target: str) -> None:
    signature = {"x": f"*{dtype}:16", "y": f"*{dtype}:16", **dict.fromkeys("pde", "*fp32:16")}
    module = _intrinsic(block_kernels.sharing, signature, target=target, f=None, M=32, N=16)
    (filling,) = (loop for loop in _loops(module.body.block.ops[0]) if _count(loop, math.Exp2))
    chunks = _number(filling.step) * 32 // (8 if target == "cpu:avx2" else 16)
    assert _count(filling, math.Exp2) == chunks
    assert _count(filling, tile.Store) == 2 * chunks, "both operands; other dots take them again"


def test_columns_are_stored_without_scatters() -> None:
    pointers = {"x": "*fp32:16", "y": "*fp32:16", "z": "*fp32:16", "m": "i32", "n": "i32"}
    module = _intrinsic(block_kernels.transposed, pointers, M=64, N=64)
    assert not any(isinstance(op, tt.Store | tt.Load) for op in module.walk())
    assert _count(module, tile.Transpose) == 1


def _attention(causal: bool) -> Operation:
    strides = {f"{x}_strides": "(i32, i32, i32, 1)" for x in "qkvo"}
    sizes = dict.fromkeys(("n_heads", "heads_per_kv", "n_queries", "n_keys"), "i32")
    signature = {**{f"{x}_ptr": "*fp32:16" for x in "qkvo"}, "sm_scale": "fp32", **strides, **sizes, "dim": "64"}
    constants: dict[str, Any] = {
        "lse_ptr": None,
        "CAUSAL": causal,
        "NEGATIVE": False,
        "BM": 128,
        "BN": 128,
        "BD": 64,
        "PART": 0,
        "REST": 0,
        "WINDOW": 0,
    }
    return _intrinsic(attention.attention_kernel, signature, **constants).body.block.ops[0]


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_two_dots_and_one_nest_over_rows(causal: bool) -> None:
    for loop in [loop for loop in _loops(_attention(causal)) if _count(loop, tile.Dot)]:
        row_nests = [inner for inner in _loops(loop) if _count(inner, tt.Reduce)]
        assert len(row_nests) == 1, "scores, sums and the output are rescaled row by row, together"
        rows = _number(row_nests[0].step)
        assert _chunks(row_nests[0], math.Exp2) == rows * 128 // 16, "exp2 of every score once"
        assert not [op for op in loop.walk() if isinstance(op, tile.Scratch)]


def test_attention_reads_queries_once() -> None:
    function = _attention(causal=True)
    loops = [loop for loop in _loops(function) if _count(loop, tile.Dot)]
    q = function.regions[0].block.arguments[0]
    users = {user for user in q.users if any(user in set(loop.walk()) for loop in loops)}
    assert not users, "queries are packed, or known to be inside, before the loops over keys"


def test_scratch_memory_is_shared_by_what_is_not_needed_at_the_same_time() -> None:
    scratch = [op for op in _attention(causal=False).walk() if isinstance(op, tile.Scratch)]
    ranges = [(op.offset, op.offset + op.bytes) for op in scratch]
    assert max(end for _, end in ranges) < sum(op.bytes for op in scratch)
    assert all(start % 64 == 0 for start, _ in ranges)
