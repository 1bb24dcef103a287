"""Programs on which passes are tested: each can be made anew, has random arguments, and runs in the executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mltriton.language as tl
from mltriton.dialects.builtin import Module
from mltriton.executor import run
from mltriton.frontend.code_generator import generate
from mltriton.ir.parser import parse_module
from mltriton.ir.passes import PassManager
from mltriton.ir.pipeline import parse_pipeline
from mltriton.kernels import attention, gemm, normalization
from mltriton.tools.signature import Constant, parse_signature

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """A kernel with arguments: `make` builds the module, `arguments` the arrays and numbers of one launch."""

    make: Callable[[], Module]
    arguments: Callable[[np.random.Generator], list[Any]]
    grid: Sequence[int] = (1,)

    def results(self, module: Module, seed: int = 0, **options: Any) -> list[Array]:
        """What the arrays hold after running `module` on this program's arguments."""
        arguments = self.arguments(np.random.default_rng(seed))
        run(module, arguments, self.grid, **options)
        return [argument for argument in arguments if isinstance(argument, np.ndarray)]

    def transformed(self, pipeline: str) -> Module:
        """The module after the passes of a pipeline, verified after each."""
        return transform(self.make(), pipeline)

    def check(self, pipeline: str, **options: Any) -> Module:
        """Run the program before and after the passes; the arrays must hold the same. Returns the module after."""
        before = self.results(self.make())
        module = self.transformed(pipeline)
        compare(before, self.results(module, **options))
        return module


def transform(module: Module, pipeline: str) -> Module:
    """Run passes, verifying after each."""
    return PassManager(parse_pipeline(pipeline)).run(module)


def compare(before: Sequence[Array], after: Sequence[Array]) -> None:
    """Equal, floats up to rounding in another order."""
    for expected, found in zip(before, after, strict=True):
        if expected.dtype.kind == "f":
            tolerance = 1e-4 if expected.dtype == np.float32 else 2e-2
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found, expected)


def text_program(
    text: str, arguments: Callable[[np.random.Generator], list[Any]], grid: Sequence[int] = (1,)
) -> Program:
    """A program written as MLIR text."""
    return Program(lambda: parse_module(text, "program.mlir"), arguments, grid)


def kernel_module(fn: Any, signature: str, **constants: Any) -> Module:
    """The tt module of a kernel; `signature` lists the parameters that `constants` leaves."""
    names = [name for name in fn.signature.parameters if name not in constants]
    entries = parse_signature(signature, names)
    known = {name: Constant(value) for name, value in constants.items()}
    return generate(fn, {name: known.get(name) or entries[name] for name in fn.signature.parameters}, family="generic")


def kernel(
    fn: Any,
    signature: str,
    arguments: Callable[[np.random.Generator], list[Any]],
    grid: Sequence[int] = (1,),
    **constants: Any,
) -> Program:
    """A program written in the language."""
    return Program(lambda: kernel_module(fn, signature, **constants), arguments, grid)


def _strides(array: Array) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def _matmul_arguments(m: int, n: int, k: int, form: str, dtype: Any = np.float32) -> Callable[..., list[Any]]:
    def make(random: np.random.Generator) -> list[Any]:
        a, b = (random.standard_normal(shape).astype(dtype) for shape in ((1, m, k), (1, k, n)))
        c = np.zeros((1, m, n), dtype)
        strides = [_strides(array)[: 2 if form == "descriptor" else 3] for array in (a, b, c)]
        return [a, b, c, m, n, k, *strides[0], *strides[1], *strides[2]]

    return make


def matmul(form: str, m: int = 40, n: int = 24, k: int = 50, **blocks: Any) -> Program:
    """A GEMM of the kernel library: form pointer, block_pointer or descriptor."""
    fn = getattr(gemm, f"matmul_{form}_kernel")
    blocks = {"BM": 16, "BN": 16, "BK": 16, "GROUP": 2, "ACC": tl.float32} | blocks
    strides = ", ".join(["i64"] * (6 if form == "descriptor" else 9))
    grid = (-(-m // blocks["BM"]) * -(-n // blocks["BN"]), 1)
    signature = f"*fp32:16, *fp32:16, *fp32:16, i32, i32, i32, {strides}"
    return kernel(fn, signature, _matmul_arguments(m, n, k, form), grid, **blocks)


def flash_attention(causal: bool, queries: int = 40, keys: int = 56, dim: int = 16, **blocks: int) -> Program:
    """Attention of the kernel library: two batches of heads that share keys and values."""
    blocks = {"BM": 16, "BN": 16, "BD": 16} | blocks

    def make(random: np.random.Generator) -> list[Any]:
        q = random.standard_normal((1, 2, queries, dim), np.float32)
        k, v = (random.standard_normal((1, 1, keys, dim), np.float32) for _ in range(2))
        o = np.zeros_like(q)
        strides = [stride for array in (q, k, v, o) for stride in _strides(array)]
        return [q, k, v, o, dim**-0.5, *strides, 2, 2, queries, keys, dim]

    signature = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, fp32, " + ", ".join(["i64"] * 16 + ["i32"] * 5)
    grid = (-(-queries // blocks["BM"]), 2)
    return kernel(attention.attention_kernel, signature, make, grid, CAUSAL=causal, **blocks)


def _row_arguments(random: np.random.Generator) -> list[Any]:
    x = random.standard_normal((5, 70), np.float32)
    return [x, np.zeros_like(x), 70, 70, 70]


def _layer_norm_arguments(random: np.random.Generator) -> list[Any]:
    x = random.standard_normal((5, 70), np.float32)
    weight, bias = (random.standard_normal(70, np.float32) for _ in range(2))
    return [x, weight, bias, np.zeros_like(x), 70, 70, 70, 1e-5]


LIBRARY: dict[str, Program] = {
    "matmul-pointer": matmul("pointer"),
    "matmul-block-pointer": matmul("block_pointer"),
    "matmul-descriptor": matmul("descriptor"),
    "attention": flash_attention(False),
    "attention-causal": flash_attention(True),
    "softmax": kernel(normalization.softmax_kernel, "*fp32, *fp32, i64, i64, i32", _row_arguments, (5,), BLOCK=128),
    "softmax-long": kernel(
        normalization.softmax_long_kernel, "*fp32, *fp32, i64, i64, i32", _row_arguments, (5,), BLOCK=32
    ),
    "layer-norm": kernel(
        normalization.layer_norm_kernel,
        "*fp32, *fp32, *fp32, *fp32, i64, i64, i32, fp32",
        _layer_norm_arguments,
        (5,),
        BLOCK=128,
    ),
}
