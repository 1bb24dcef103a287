"""Floats of 8 bits on Xe: every value as f16, by the formula and by the assembly, and products of them; bf16."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import mltriton as triton
import mltriton.language as tl
from mltriton.ir.types import F8E4M3, F8E5M2
from mltriton.ir.types import Type as IRType
from mltriton.kernels import matmul
from mltriton.kernels.attention import Blocks, attention_launch
from mltriton.targets.llvm.types import I32, VOID, Type, vector
from mltriton.targets.llvm.writer import Module
from mltriton.targets.xe.llvm.small_floats import Widening, widened
from mltriton.targets.xe.spirv.assembly import text_of_widening

from .test_library_isa import compiled

DTYPES = {F8E4M3: torch.float8_e4m3fn, F8E5M2: torch.float8_e5m2}
VIEWS = {"B": np.int8, "UB": np.uint8, "W": np.int16, "UW": np.uint16, "UD": np.uint32, "HF": np.float16}
REGISTER = 64  # bytes


def every_value(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(256).to(torch.uint8).view(dtype)


def executed(text: str, held: np.ndarray, result: int) -> np.ndarray:
    """What assembly without control flow makes of the bytes $1: the bytes $0."""
    memory = {"$1": held, "$0": np.zeros(result, np.uint8)}
    views: dict[str, np.ndarray] = {}
    for name, kind, count, of in re.findall(
        r"\.decl (\w+) v_type=G type=(\w+) num_elts=(\d+)(?: alias=<(.*),0>)?", text
    ):
        size = int(count) * np.dtype(VIEWS[kind]).itemsize
        views[name] = memory.setdefault(of or name, np.zeros(size, np.uint8)).view(VIEWS[kind])

    def read(operand: str, count: int) -> np.ndarray:
        if operand.startswith("0x"):
            number, kind = operand.split(":")
            return np.array([int(number, 16)], VIEWS[f"U{'D' if kind == 'ud' else 'W'}"]).view(VIEWS[kind.upper()])
        if operand[0].isdigit():
            return np.array([int(operand.split(":")[0])])
        name, *numbers = re.fullmatch(r"(\w+)\((\d+),(\d+)\)<(\d+);(\d+),(\d+)>", operand).groups()  # type: ignore[union-attr]
        register, element, vertical, width, horizontal = map(int, numbers)
        first = register * REGISTER // views[name].itemsize + element
        return views[name][[first + i // width * vertical + i % width * horizontal for i in range(count)]]

    for operation, count, to, *operands in re.findall(
        r"^(\w+) \(M1_NM, (\d+)\) (\S+)<1> (\S+) (\S+)$", text, re.MULTILINE
    ):
        name, register, element = re.fullmatch(r"(\w+)\((\d+),(\d+)\)", to).groups()  # type: ignore[union-attr]
        assert element == "0"
        a, b = (read(operand, int(count)) for operand in operands)
        view = views[name]
        wide = a.astype(view.dtype)
        made = {"shl": wide << b.astype(view.dtype)} if operation == "shl" else {}
        made |= {"and": wide & b, "or": wide | b, "add": wide + b} if view.dtype == np.uint32 else {}
        made |= {"mul": wide * b} if view.dtype == np.float16 else {}
        first = int(register) * REGISTER // view.itemsize
        view[first : first + int(count)] = made[operation]
    return memory["$0"]


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("source", [vector("i8", 16), I32])
def test_the_assembly_gives_the_same_numbers(kind: IRType, source: Type) -> None:
    """Bytes come in order, or four of a lane in a word, of which two and two become words of pairs."""
    values, text = every_value(DTYPES[kind]), text_of_widening(kind, source)
    held = values.view(torch.uint8).numpy().reshape(-1, source.bytes * 16)
    found = np.concatenate([executed(text, part.copy(), 2 * part.size).view(np.float16) for part in held])
    if source is I32:
        values = values.view(-1, 16, 2, 2).transpose(1, 2).reshape(-1)
    np.testing.assert_array_equal(found, values.to(torch.float16).numpy())


def test_a_module_says_what_a_call_widens() -> None:
    f = Module().function("kernel", VOID, [("word", I32)])
    widened(f, F8E5M2, f.parameters[0], vector("i32", 2))
    assert f.module.meanings == {"widened.f8E5M2.i32.v2i32": Widening(F8E5M2, I32)}


@triton.jit
def convert(x, y, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(y + at, tl.load(x + at).to(tl.float16))


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize("dtype", DTYPES.values())
def test_every_value_is_converted(dtype: torch.dtype, codegen: str) -> None:
    values, found = every_value(dtype), torch.zeros(256, dtype=torch.float16)
    convert[1,](values, found, 256, target="xe:pvc", num_warps=1, codegen=codegen)
    np.testing.assert_array_equal(found.numpy(), values.to(torch.float16).numpy())


E4, E5 = DTYPES.values()


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize(
    ("left", "right", "turned", "sizes"),
    [
        (E4, E4, "", (37, 80, 70)),
        (E5, E4, "a", (37, 66, 100)),
        (E4, E5, "b", (5, 70, 100)),
        (E5, E5, "ab", (16, 64, 64)),
        (E4, E4, "b", (64, 64, 96)),
    ],
)
def test_products(left: torch.dtype, right: torch.dtype, turned: str, sizes: tuple[int, int, int]) -> None:
    """Products of small floats are exact in f32; their sums differ by its rounding alone."""
    m, n, k = sizes
    torch.manual_seed(m)
    a, b = (torch.randn(m, k) * 5).to(left), (torch.randn(k, n) * 0.01).to(right)
    a, b = (x.T.contiguous().T if name in turned else x for name, x in (("a", a), ("b", b)))
    found = matmul(a, b, out_dtype=torch.float32, target="xe:pvc")
    wanted, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    assert ((found - wanted).abs() <= 1e-6 * size).all()


@pytest.mark.usefixtures("queue")
def test_results_are_rounded_to_bf16() -> None:
    """As the CPU rounds them: to the nearest, ties to even."""
    torch.manual_seed(2)
    a, b = torch.randn(64, 32).bfloat16(), torch.randn(32, 64).bfloat16()
    wide, found = (matmul(a, b, out_dtype=kind, target="xe:pvc") for kind in ("float32", None))
    assert (found == wide.bfloat16()).all()


@pytest.mark.usefixtures("needs_ocloc")
def test_loops_of_attention_in_bf16() -> None:
    """Weights are rounded by one instruction for each 16, as those of f16 are."""
    q, k, v, o = (torch.zeros((1, 4, 1024, 128), dtype=torch.bfloat16) for _ in range(4))
    info, loops = compiled(attention_launch(q, k, v, o, causal=False, blocks=Blocks(128, 64)), "pvc", 16)
    assert (info.registers, info.spilled) == (256, 0)
    assert [loop.operations["dpas"] for loop in loops] == [64, 64]
    assert max(loop.total for loop in loops) <= 650
