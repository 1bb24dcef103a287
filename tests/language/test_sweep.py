"""Expressions of the language over types and shapes, each against torch: a few of them, and (slow) all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl

torch = pytest.importorskip("torch")

INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
FLOATS = ("float16", "bfloat16", "float32", "float64")
TYPES = (*INTEGERS, *FLOATS, "bool")
SHAPES = ((8,), (4, 8), (1, 16), (16, 1), (2, 4, 8), (1, 2, 1, 4), (2, 2, 2, 2, 4))
Case = tuple[str, list[Any], Any]


@triton.jit
def template(out, x, y, z):
    tl.store(out, tl.load(x))  # Each case puts its own text in its place.


def offsets(shape: tuple[int, ...]) -> str:
    """The places of a block in an array without gaps."""
    terms, stride = [], 1
    for axis in reversed(range(len(shape))):
        index = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        terms.append(f"tl.arange(0, {shape[axis]})[{index}] * {stride}")
        stride *= shape[axis]
    return " + ".join(terms) or "0"


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.rand(shape) > 0.5
    return torch.randn(shape).to(kind) if kind.is_floating_point else torch.randint(1, 100, shape).to(kind)


def check(expression: str, inputs: list[Any], expected: Any) -> None:
    kernel = triton.JITFunction(template.fn)
    lines = [f"{n} = tl.load({n} + {offsets(i.shape)})" for n, i in zip("xyz", inputs, strict=False)]
    lines += [f"result = {expression}", f"tl.store(out + {offsets(expected.shape)}, result)"]
    kernel._unsafe_update_src("\n    ".join(["def template(out, x, y, z):", *lines]))
    out = torch.zeros_like(expected)
    kernel[(1,)](out, *[x.contiguous() for x in inputs], *[None] * (3 - len(inputs)))
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True, msg=lambda text: f"{expression}: {text}")


def moved(shape: tuple[int, ...], dtype: str) -> Iterator[Case]:
    """What moves elements without changing them."""
    x, y, rank = random(shape, dtype), random(shape, dtype, 1), len(shape)
    chosen = random(shape, "bool", 2)
    yield "tl.ravel(x)", [x], x.reshape(-1)
    yield "tl.interleave(x, y)", [x, y], torch.stack((x, y), -1).flatten(-2)
    yield "tl.where(z, x, y)", [x, y, chosen], torch.where(chosen, x, y)
    yield "tl.where(y, x, 0)", [x, chosen], torch.where(chosen, x, torch.zeros_like(x))
    for order in itertools.islice(itertools.permutations(range(rank)), 1, 60, 7):
        yield f"tl.permute(x, {order})", [x], x.permute(order).contiguous()
    for axis in range(rank):
        yield f"tl.flip(x, dim={axis})", [x], x.flip(axis)
        yield f"tl.cat(x, y, dim={axis})", [x, y], torch.cat((x, y), axis)
        places = torch.randint(0, shape[axis], [4 if a == axis else size for a, size in enumerate(shape)])
        yield f"tl.gather(x, y, {axis})", [x, places], torch.gather(x, axis, places)
    if rank < 5:
        pair = torch.stack((x, y), -1)
        yield "tl.join(x, y)", [x, y], pair
        yield "tl.split(x)[1]", [pair], y
    if rank < 4:
        yield "tl.expand_dims(x, (0, -1))", [x], x[None, ..., None]


def ordered(shape: tuple[int, ...], dtype: str) -> Iterator[Case]:
    """What compares elements."""
    x, y = random(shape, dtype), random(shape, dtype, 1)
    for descending in (False, True):
        yield f"tl.sort(x, descending={descending})", [x], torch.sort(x, -1, descending=descending)[0]
    for count in (1, 2, 4):
        if count <= shape[-1]:
            yield f"tl.topk(x, {count})", [x], torch.topk(x, count, -1)[0]
    for axis in range(len(shape)):
        yield f"tl.argmax(x, {axis})", [x], _first(x == x.amax(axis, keepdim=True), axis)
        yield f"tl.argmin(x, {axis})", [x], _first(x == x.amin(axis, keepdim=True), axis)
        yield f"tl.max(x, {axis}, keep_dims=True).to(x.dtype)", [x], x.amax(axis, keepdim=True)
        yield f"tl.min(x, {axis}).to(x.dtype)", [x], x.amin(axis)
    yield "tl.max(x).to(x.dtype)", [x], x.amax()
    for sign, compare in (("<", torch.lt), (">=", torch.ge), ("==", torch.eq), ("!=", torch.ne)):
        yield f"x {sign} y", [x, y], compare(x, y)


def _first(matches: Any, axis: int) -> Any:
    return matches.int().argmax(axis).int()


def converted(shape: tuple[int, ...], dtype: str) -> Iterator[Case]:
    """Every conversion, by value."""
    x = random(shape, dtype)
    for other in TYPES:
        name = "int1" if other == "bool" else other
        yield f"x.to(tl.{name})", [x], x.to(getattr(torch, other))


FAMILIES: dict[str, Callable[[tuple[int, ...], str], Iterator[Case]]] = {
    "moved": moved,
    "ordered": ordered,
    "converted": converted,
}
ALL = list(itertools.product(FAMILIES, SHAPES, TYPES))


def run(family: str, shape: tuple[int, ...], dtype: str) -> None:
    if family == "ordered" and dtype == "bool":
        pytest.skip("truth values have no order in the language")
    for case in FAMILIES[family](shape, dtype):
        check(*case)


@pytest.mark.parametrize(("family", "shape", "dtype"), ALL[::17])
def test_some(family: str, shape: tuple[int, ...], dtype: str) -> None:
    run(family, shape, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "shape", "dtype"), ALL)
def test_all(family: str, shape: tuple[int, ...], dtype: str) -> None:
    run(family, shape, dtype)
