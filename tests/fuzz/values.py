"""Values of random programs: what is known of each, and the steps that make one of others.

A step adds lines to a `Body`. Numbers stay exact: integers wrap, floats are whole numbers below the type's `LIMIT` (or
the large ones that were loaded), so that any order of additions gives the same and comparisons may decide.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from fuzz.body import INTEGERS, LARGEST, LIMIT, SIGNED, WHOLE, Body, Var, shaped, tl

# Element by element


def _operands(b: Body, test: Callable[[Var], bool]) -> tuple[Var, Var, str, str] | None:
    """Two values with the texts that broadcast to the first one's shape."""
    x = b.pick(test)
    y = b.pick(lambda var: x is not None and test(var) and shaped(var, x.shape) is not None)
    if x is None or y is None:
        return None
    right = shaped(y, x.shape)
    assert right is not None
    return (x, y, x.name, right) if b.rng.random() < 0.7 or x.shape != y.shape else (x, y, right, x.name)


INTEGER_TEXTS = [
    *[f"({{l}} {symbol} {{r}})" for symbol in "+-*&|^"],
    *["tl.maximum({l}, {r})", "tl.minimum({l}, {r})", "tl.where({l} {c} {r}, {l}, {r})"],
]
ALONE = ["({l} // 3 + {l} % 7)", "({l} % 5)", "({l} << 3)", "({l} >> 2)", "({l} // 7 // 3)", "(-{l})", "(~{l})"]


def integers(b: Body) -> None:
    """Wrapping arithmetic of any two widths and signs, or of one value."""
    found = _operands(b, lambda var: var.dtype in INTEGERS)
    if found is None:
        return
    x, y, left, right = found
    text = b.rng.choice(ALONE if b.rng.random() < 0.35 else INTEGER_TEXTS)
    target = b.rng.choice([x.dtype, x.dtype, y.dtype, b.rng.choice(INTEGERS)])
    compare = b.rng.choice(["<", "<=", ">", ">=", "==", "!="])
    b.add(f"{text.format(l=left, r=right, c=compare)}.to({tl(target)})", x.shape, target)


def floats(b: Body) -> None:
    """Sums, products and extremes of floats."""
    found = _operands(b, lambda var: var.is_float and var.is_tame)
    if found is None or found[0].dtype != found[1].dtype:
        return
    x, y, left, right = found
    text, bound = b.rng.choice(
        [
            ("({l} + {r})", x.bound + y.bound),
            ("({l} - {r})", x.bound + y.bound),
            ("({l} * {r})", x.bound * y.bound),
            ("tl.maximum({l}, {r})", max(x.bound, y.bound)),
            ("tl.minimum({l}, {r})", max(x.bound, y.bound)),
        ]
    )
    if bound <= WHOLE[x.dtype]:
        exact = x.exact and y.exact
        b.add(f"{text.format(l=left, r=right)}.to({tl(x.dtype)})", x.shape, x.dtype, bound, exact=exact)


def function(b: Body) -> None:
    """A function that is expensive: whole numbers of it where it has them."""
    x = b.pick(lambda var: var.dtype in ("float32", "float64") and var.is_tame)
    if x is None:
        return
    text, bound, exact = b.rng.choice(
        [
            (f"tl.floor(tl.abs({x.name}) / 4.0 / 2.0)", x.bound, x.exact),
            (f"tl.sqrt(({x.name} * {x.name}))", x.bound, False),
            (f"tl.exp(tl.minimum(tl.abs({x.name}), 8.0) * -0.25)", 1.0, False),
            (f"tl.abs({x.name})", x.bound, x.exact),
        ]
    )
    b.add(text, x.shape, x.dtype, bound, exact=exact)


def select(b: Body) -> None:
    """One of two values, as an exact comparison says."""
    found = _operands(b, lambda var: var.exact)
    if found is None or found[0].dtype != found[1].dtype:
        return
    x, y, left, right = found
    d = b.pick(lambda var: var.exact and shaped(var, x.shape) is not None)
    assert d is not None
    threshold = b.rng.choice(["0.0", "-1.0", "3.0"] if d.is_float else ["0", "2", "100"])
    test = f"{shaped(d, x.shape)} {b.rng.choice(['<', '<=', '>', '>=', '==', '!='])} {threshold}"
    b.add(f"tl.where({test}, {left}, {right})", x.shape, x.dtype, max(x.bound, y.bound))


def convert(b: Body) -> None:
    """Another type: of small numbers, of large floats to the unsigned type that holds them, of any integer."""
    x = b.pick(lambda var: var.exact)
    if x is None:
        return
    if not x.is_float:
        target = b.rng.choice([*INTEGERS, *LIMIT])
        if target in INTEGERS:
            b.add(f"{x.name}.to({tl(target)})", x.shape, target)
        else:
            b.add(f"({x.name} & 63).to({tl(target)})", x.shape, target, 63.0)
    elif not x.is_tame:
        target = b.rng.choice(["uint32", "int64", "uint64"])
        b.add(f"{x.name}.to({tl(target)})", x.shape, target)
    elif b.rng.random() < 0.5:
        wide = x.bound > 127
        target = b.rng.choice(["int32", "int64"] if wide else SIGNED)
        if x.bound < 2**31:
            b.add(f"{x.name}.to({tl(target)})", x.shape, target)
    else:
        target = b.rng.choice(list(LIMIT))
        if x.bound <= WHOLE[target]:
            b.add(f"{x.name}.to({tl(target)})", x.shape, target, x.bound)


# Shapes


def _powers(size: int) -> list[int]:
    return [1 << bit for bit in range(size.bit_length())]


def _factored(rng: random.Random, size: int) -> tuple[int, ...]:
    """Sizes of one to four dimensions whose product is `size`."""
    sizes: list[int] = []
    for _ in range(rng.randint(0, 3)):
        sizes.append(rng.choice(_powers(size // math.prod(sizes))))
    rest = [*sizes, size // math.prod(sizes)]
    rng.shuffle(rest)
    return tuple(rest)


def _moved(b: Body, x: Var, text: str, shape: Sequence[int]) -> None:
    b.add(text, tuple(shape), x.dtype, x.bound, exact=x.exact)


def reshape(b: Body, x: Var) -> None:
    """The same elements in other dimensions."""
    shape = _factored(b.rng, math.prod(x.shape))
    _moved(b, x, f"tl.reshape({x.name}, {shape})", shape)


def permute(b: Body, x: Var) -> None:
    """Dimensions in another order."""
    order = list(range(len(x.shape)))
    b.rng.shuffle(order)
    name = "tl.trans" if b.rng.random() < 0.5 else "tl.permute"
    if len(order) > 1:
        _moved(b, x, f"{name}({x.name}, {tuple(order)})", [x.shape[dim] for dim in order])


def expand(b: Body, x: Var) -> None:
    """A new dimension, repeated or not."""
    axis, size = b.rng.randint(0, len(x.shape)), b.rng.choice([1, 2, 4])
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    wide = (*x.shape[:axis], size, *x.shape[axis:])
    if len(shape) <= 4 and math.prod(wide) <= LARGEST:
        _moved(b, x, f"tl.broadcast_to(tl.expand_dims({x.name}, {axis}), {wide})", wide)


def flip(b: Body, x: Var) -> None:
    """Backwards along a dimension."""
    _moved(b, x, f"tl.flip({x.name}, {b.rng.randrange(len(x.shape))})", x.shape)


def sort(b: Body, x: Var) -> None:
    """Rows in order, or the largest elements of each."""
    if not x.exact or x.shape[-1] > 64:
        return
    k = b.rng.choice([0, 0, *_powers(x.shape[-1])])
    text = f"tl.topk({x.name}, {k})" if k else f"tl.sort({x.name}{b.rng.choice(['', ', descending=True'])})"
    _moved(b, x, f"{text}.to({tl(x.dtype)})", (*x.shape[:-1], k or x.shape[-1]))


def join(b: Body, x: Var) -> None:
    """Two blocks as one: along a new dimension, by turns, or one after the other."""
    y = b.pick(lambda var: var.shape == x.shape and var.dtype == x.dtype)
    if y is None or math.prod(x.shape) * 2 > LARGEST:
        return
    bound, exact = max(x.bound, y.bound), x.exact and y.exact
    kind = b.rng.choice(["join", "interleave", "cat"])
    if kind == "join" and len(x.shape) < 4:
        b.add(f"tl.join({x.name}, {y.name})", (*x.shape, 2), x.dtype, bound, exact=exact)
    elif kind == "interleave" and len(x.shape) < 4:
        b.add(f"tl.interleave({x.name}, {y.name})", (*x.shape[:-1], 2 * x.shape[-1]), x.dtype, bound, exact=exact)
    else:
        shape = (2 * x.shape[0], *x.shape[1:])
        b.add(f"tl.cat({x.name}, {y.name}, can_reorder=True)", shape, x.dtype, bound, exact=exact)


def split(b: Body, x: Var) -> None:
    """Both halves of pairs."""
    size = math.prod(x.shape)
    if size < 4:
        return
    shape = (*_factored(b.rng, size // 2)[:3], 2)
    shape = (size // 2 // math.prod(shape[1:-1]), *shape[1:-1], 2) if len(shape) > 2 else (size // 2, 2)
    one, other = b.fresh(), b.fresh()
    b.emit(f"{one}, {other} = tl.split(tl.reshape({x.name}, {shape}))")
    b.vars += [replace(x, name=name, shape=shape[:-1]) for name in (one, other)]


def gather(b: Body, x: Var) -> None:
    """Elements of another value's choice along a dimension."""
    axis = b.rng.randrange(len(x.shape))
    i = b.pick(lambda var: var.dtype in ("int32", "int64", "uint32") and var.shape == x.shape)
    if i is not None:
        _moved(b, x, f"tl.gather({x.name}, ({i.name} & {x.shape[axis] - 1}).to(tl.int32), {axis})", x.shape)


SHAPES: list[Callable[[Body, Var], None]] = [reshape, reshape, permute, expand, flip, sort, join, split, gather]


def shape_step(b: Body) -> None:
    """Any operation that moves elements."""
    x = b.pick(lambda var: len(var.shape) > 0)
    if x is not None:
        b.rng.choice(SHAPES)(b, x)


# Reductions and scans


def _combines(x: Var) -> list[str]:
    """What may combine elements of a value."""
    names = ["max", "min", "max_of", "min_of"]
    if x.exact:
        names += ["argmax", "argmin"]
    if not x.is_float:
        return [*names, "sum", "xor_sum", "reduce_or", "add_of", "mul_of", "and_of", "or_of", "xor_of"]
    return [*names, *(["sum", "add_of"] if x.is_tame else [])]


def reduction(b: Body) -> None:
    """Elements combined along a dimension, or all."""
    x = b.pick(lambda var: len(var.shape) > 0)
    if x is None:
        return
    axis = b.rng.choice([*range(len(x.shape)), *range(len(x.shape)), None])
    size = math.prod(x.shape) if axis is None else x.shape[axis]
    name = b.rng.choice(_combines(x))
    kept = b.rng.random() < 0.2
    shape = tuple(1 if axis in (dim, None) else n for dim, n in enumerate(x.shape) if kept or axis not in (dim, None))
    keep, where = ", keep_dims=True" if kept else "", f", {axis}"
    if name.endswith("_of"):
        text = f"tl.reduce({x.name}{where}, {name}{keep})"
    else:
        text = f"tl.{name}({x.name}{where}{keep})"
    sums = name in ("sum", "add_of")
    bound = x.bound * size if sums else x.bound
    if bound > WHOLE.get(x.dtype, math.inf) and sums:
        return
    if name.startswith("arg"):
        b.add(text, shape, "int32")
    else:
        target = x.dtype if x.is_float or b.rng.random() < 0.5 else b.rng.choice(["int32", "int64"])
        b.add(f"{text}.to({tl(target)})", shape, target, bound, exact=x.exact)


def scan(b: Body) -> None:
    """Running combinations along a dimension."""
    x = b.pick(lambda var: len(var.shape) > 0 and var.is_tame)
    if x is None:
        return
    axis = b.rng.randrange(len(x.shape))
    names = ["max_of", "min_of", "cumsum"]
    names += [] if x.is_float else ["cumprod", "add_of", "xor_of", "and_of", "mul_of", "first_of"]
    name, reverse = b.rng.choice(names), b.rng.choice(["", ", reverse=True"])
    bound = x.bound * x.shape[axis] if name == "cumsum" else x.bound
    if name == "cumsum" and bound > WHOLE.get(x.dtype, math.inf):
        return
    text = f"tl.{name}({x.name}, {axis}{reverse})" if name.startswith("cum") else (
        f"tl.associative_scan({x.name}, {axis}, {name}{reverse})"
    )  # fmt: skip
    b.add(f"{text}.to({tl(x.dtype)})", x.shape, x.dtype, bound, exact=x.exact)


COMBINES = "\n\n\n".join(
    f"@triton.jit\ndef {name}_of(a, b):\n    return {text}"
    for name, text in {
        "add": "a + b",
        "mul": "a * b",
        "and": "a & b",
        "or": "a | b",
        "xor": "a ^ b",
        "max": "tl.maximum(a, b).to(a.dtype)",
        "min": "tl.minimum(a, b).to(a.dtype)",
        "first": "tl.where(a != 0, a, b)",
    }.items()
)

STEPS: dict[Callable[[Body], None], int] = {
    integers: 4,
    floats: 4,
    function: 2,
    select: 2,
    convert: 3,
    shape_step: 5,
    reduction: 4,
    scan: 1,
}
