"""Programs on which passes are tested: each can be made anew, has random arguments, and runs in the executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mltriton.executor import run
from mltriton.frontend.code_generator import generate
from mltriton.frontend.signature import Constant, parse_signature
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.types import I32
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline

from . import kernels

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """A kernel with arguments: `make` builds the module, `arguments` the arrays and numbers of one launch."""

    make: Callable[[], Module]
    arguments: Callable[[np.random.Generator], list[Any]]
    grid: Sequence[int] = (1,)

    def with_warps(self, count: int, target: str = "generic") -> Program:
        """The same program, to be compiled for a number of warps."""

        def make() -> Module:
            module = self.make()
            module.attributes |= {"ttg.num-warps": IntegerAttr(count, I32), "ttg.target": StringAttr(target)}
            return module

        return replace(self, make=make)

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

    def check_each(self, pipelines: Sequence[str]) -> Module:
        """Run the program before the first of the pipelines and behind each, one after the other."""
        module = self.make()
        before = self.results(module)
        for pipeline in pipelines:
            module = transform(module, pipeline)
            compare(before, self.results(module))
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
    return generate(fn, {name: known.get(name) or entries[name] for name in fn.signature.parameters}, target="generic")


def kernel(
    fn: Any,
    signature: str,
    arguments: Callable[[np.random.Generator], list[Any]],
    grid: Sequence[int] = (1,),
    **constants: Any,
) -> Program:
    """A program written in the language."""
    return Program(lambda: kernel_module(fn, signature, **constants), arguments, grid)


def strides_of(array: Array) -> list[int]:
    """Strides in elements."""
    return [stride // array.itemsize for stride in array.strides]


def matmul(fn: Any, m: int = 40, n: int = 24, k: int = 50, dtype: str = "fp32", **blocks: int) -> Program:
    """A GEMM of `kernels.py` on `dtype` (fp32 or fp16) operands, into f32."""
    blocks = {"BM": 16, "BN": 16, "BK": 16} | blocks

    def make(random: np.random.Generator) -> list[Any]:
        a, b = (random.standard_normal(shape).astype(DTYPES[dtype]) for shape in ((m, k), (k, n)))
        c = np.zeros((m, n), np.float32)
        return [a, b, c, m, n, k, *strides_of(a), *strides_of(b), *strides_of(c)]

    signature = f"*{dtype}:16, *{dtype}:16, *fp32:16, i32, i32, i32, i32, i32, i32, i32, i32, i32"
    return kernel(fn, signature, make, (-(-m // blocks["BM"]), -(-n // blocks["BN"])), **blocks)


def flash_attention(
    causal: bool, queries: int = 40, keys: int = 56, dim: int = 16, dtype: str = "fp32", **blocks: int
) -> Program:
    """Attention of `kernels.py`."""
    blocks = {"BM": 16, "BN": 16} | blocks

    def make(random: np.random.Generator) -> list[Any]:
        q = random.standard_normal((queries, dim)).astype(DTYPES[dtype])
        k, v = (random.standard_normal((keys, dim)).astype(DTYPES[dtype]) for _ in range(2))
        return [q, k, v, np.zeros_like(q), 1.44 * dim**-0.5, queries, keys]

    signature = ", ".join([f"*{dtype}:16"] * 4 + ["fp32", "i32", "i32"])
    return kernel(kernels.attention, signature, make, (-(-queries // blocks["BM"]),), CAUSAL=causal, BD=dim, **blocks)


def _rows(random: np.random.Generator) -> list[Any]:
    x = random.standard_normal((6, 70)).astype(np.float32)
    return [x, np.zeros_like(x), 6, 70]


DTYPES = {"fp32": np.float32, "fp16": np.float16}
MATMULS: dict[str, Any] = {
    "matmul-pointer": kernels.matmul_pointer,
    "matmul-counter": kernels.matmul_counter,
    "matmul-block-pointer": kernels.matmul_block_pointer,
    "matmul-descriptor": kernels.matmul_descriptor,
}
LIBRARY: dict[str, Program] = {
    **{name: matmul(fn) for name, fn in MATMULS.items()},
    "attention": flash_attention(False),
    "attention-causal": flash_attention(True),
    "softmax": kernel(kernels.softmax, "*fp32, *fp32, i32", lambda random: [*_rows(random)[:2], 70], (6,), BLOCK=128),
    "softmax-rows": kernel(kernels.softmax_rows, "*fp32, *fp32, i32, i32", _rows, (2,), BM=4, BLOCK=32),
}
