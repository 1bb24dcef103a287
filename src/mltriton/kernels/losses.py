# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Cross entropy of rows of logits: the loss, its gradient, or both.

Level: user. One program instance takes one row, which it reads once for its maximum and sum of exponentials, block by
block, and once more for the gradient. Of long rows on NVIDIA's GPUs it keeps the end in registers meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    as_rows,
    dtype_name,
    empty,
    item_size,
    recorded,
    require_no_gradient,
    require_one_kind,
    requires_gradient,
)
from mltriton.kernels.calls import again, is_known, key_of, remember
from mltriton.kernels.launch import Example, Launch, example_of, family_of_warps, target_of
from mltriton.kernels.normalization import COMPUTED_IN, LOWEST, check_rows, choose_rows
from mltriton.runtime.specialization import ON_HOST, device_kind

IGNORED = -100  # the label of rows without a loss, unless another is named
BLOCK = 16384  # of rows on NVIDIA's GPUs
LONG = 65536  # rows that a multiprocessor of one has to itself:
LONG_WARPS, TAIL = 32, 3  # its warps, and blocks that these keep in registers


@triton.jit
def cross_entropy_kernel(
    logits_ptr, labels_ptr, dloss_ptr, loss_ptr, gradient_ptr, stride, columns, ignored,
    LOWEST: tl.constexpr, FLOAT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The loss of one row, and its gradient, which leaves the second-level cache to rows that are read again; either
    may be None. The gradient is multiplied by `dloss` of the row, if there is one. Maxima start at LOWEST, a finite
    number.
    """
    LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    is_column = (label >= 0) & (label < columns)
    picked = tl.load(logits_ptr + row * stride + label, mask=is_column, other=0.0).to(FLOAT)
    largest = tl.full((), LOWEST, FLOAT)
    total = tl.full((), 0.0, FLOAT)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + at, mask=at < columns, other=-float("inf")).to(FLOAT) * LOG2_E
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp2(largest - new) + tl.sum(tl.exp2(x - new), axis=0)
        largest = new
    norm = largest + tl.log2(total)
    is_used = is_column & (label != ignored)
    nothing = tl.where(label == ignored, float("inf"), float("nan")).to(FLOAT)
    norm = tl.where(is_used, norm, nothing)
    if loss_ptr is not None:
        tl.store(loss_ptr + row, tl.where(label == ignored, 0.0, norm / LOG2_E - picked))
    if gradient_ptr is not None:
        label = tl.where(is_used, label, -1)
        for first in range(0, columns, BLOCK):
            at = first + tl.arange(0, BLOCK)
            x = tl.load(logits_ptr + row * stride + at, mask=at < columns).to(FLOAT)
            gradient = tl.exp2(x * LOG2_E - norm)
            gradient -= tl.where(at == label, 1.0, 0.0)
            if dloss_ptr is not None:
                gradient *= tl.load(dloss_ptr + row).to(FLOAT)
            gradient = gradient.to(gradient_ptr.dtype.element_ty)
            tl.store(gradient_ptr + row * columns + at, gradient, mask=at < columns, cache_modifier=".cs")


@triton.jit
def _with_block(largest, total, block, LOG2_E: tl.constexpr, FLOAT: tl.constexpr):
    """Each lane's maximum and sum with a block, of which it has a row."""
    x = block.to(FLOAT)
    new = tl.maximum(largest, tl.max(x, axis=1) * LOG2_E)
    powers = tl.exp2(x * LOG2_E - new[:, None])
    return new, total * tl.exp2(largest - new) + tl.sum(powers, axis=1)


@triton.jit
def _store_gradient(
    row_ptr, block, norm, scale, label, first, of, columns, LOG2_E: tl.constexpr, FLOAT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A block's part of the gradient."""
    gradient = tl.exp2(block.to(FLOAT) * LOG2_E - norm)
    if (label >= first) & (label < first + BLOCK):
        gradient -= tl.where(first + of == label, 1.0, 0.0)
    gradient = (gradient * scale).to(row_ptr.dtype.element_ty)
    tl.store(row_ptr + first + of, gradient, mask=first + of < columns, cache_modifier=".cs")


@triton.jit
def cross_entropy_long_kernel(
    logits_ptr, labels_ptr, dloss_ptr, loss_ptr, gradient_ptr, stride, columns, ignored, behind,
    LOWEST: tl.constexpr, FLOAT: tl.constexpr, LANES: tl.constexpr, EACH: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """The same of a row that a multiprocessor has to itself: its last TAIL blocks, from element `behind` on, stay in
    registers, of which shared memory has no room for all others. Until the row's end nobody waits for others: each of
    LANES lanes has a maximum and a sum of its own, and EACH elements of a block.
    """
    LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
    BLOCK: tl.constexpr = LANES * EACH
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * stride
    of = tl.arange(0, LANES)[:, None] * EACH + tl.arange(0, EACH)[None, :]
    tail = ()
    for number in tl.static_range(TAIL):
        at = behind + number * BLOCK + of
        tail = tail + (tl.load(row_ptr + at, mask=at < columns, other=-float("inf")),)  # noqa: RUF005
    label = tl.load(labels_ptr + row)
    is_column = (label >= 0) & (label < columns)
    picked = tl.load(row_ptr + label, mask=is_column, other=0.0).to(FLOAT)
    largest = tl.full([LANES], LOWEST, FLOAT)
    total = tl.zeros([LANES], FLOAT)
    for first in range(0, behind, BLOCK):
        largest, total = _with_block(largest, total, tl.load(row_ptr + (first + of)), LOG2_E, FLOAT)
    for number in tl.static_range(TAIL):
        largest, total = _with_block(largest, total, tail[number], LOG2_E, FLOAT)
    most = tl.max(largest, axis=0)
    norm = most + tl.log2(tl.sum(total * tl.exp2(largest - most), axis=0))
    is_used = is_column & (label != ignored)
    norm = tl.where(is_used, norm, tl.where(label == ignored, float("inf"), float("nan")).to(FLOAT))
    if loss_ptr is not None:
        tl.store(loss_ptr + row, tl.where(label == ignored, 0.0, norm / LOG2_E - picked))
    if gradient_ptr is not None:
        label = tl.where(is_used, label, -1)
        out = gradient_ptr + row * columns
        scale = tl.full((), 1.0, FLOAT)
        if dloss_ptr is not None:
            scale = tl.load(dloss_ptr + row).to(FLOAT)
        for first in range(0, behind, BLOCK):
            block = tl.load(row_ptr + (first + of))
            _store_gradient(out, block, norm, scale, label, first, of, columns, LOG2_E, FLOAT, BLOCK)
        for number in tl.static_range(TAIL):
            first = behind + number * BLOCK
            _store_gradient(out, tail[number], norm, scale, label, first, of, columns, LOG2_E, FLOAT, BLOCK)


def cross_entropy(logits: Array, labels: Array, *, ignore_index: int = IGNORED, target: str | None = None) -> Array:
    """log(sum(exp(logits))) - logits[label] of each row: `logits` [..., columns] f16, bf16 or f32, computed in f32, or
    f64; `labels` [...] int32 or int64. Rows whose label is `ignore_index` have the loss 0. `target` is what it runs on
    ("xe:pvc", say), None where the arrays lie.

    Returns float32 (float64 of float64) [...], contiguous, of the kind of `logits`. Raises `ArgumentError` for other
    dtypes, arrays that differ in kind or do not fit, and in main memory for a label that is no column; on a GPU the
    loss of such a row is not a number, nor is its gradient.
    """
    return _cross_entropy(cross_entropy, logits, labels, None, ignore_index, target)[0]


def cross_entropy_with_gradient(
    logits: Array, labels: Array, *, ignore_index: int = IGNORED, target: str | None = None
) -> tuple[Array, Array]:
    """`cross_entropy` and the gradient of the sum of the losses to `logits`, contiguous and of their dtype, at once."""
    loss, gradient = _cross_entropy(cross_entropy_with_gradient, logits, labels, None, ignore_index, target)
    return loss, gradient


def cross_entropy_backward(
    dloss: Array, logits: Array, labels: Array, *, ignore_index: int = IGNORED, target: str | None = None
) -> Array:
    """The gradient of sum(dloss * cross_entropy(logits, labels)) to `logits`, contiguous and of their dtype; `dloss`
    has the losses' shape and any of the logits' dtypes.
    """
    return _cross_entropy(cross_entropy_backward, logits, labels, dloss, ignore_index, target)[0]


def _cross_entropy(
    function: Callable[..., Any],
    logits: Array,
    labels: Array,
    dloss: Array | None,
    ignored: int,
    target: str | None,
) -> list[Array]:
    """What `function` returns: loss, gradient, or both."""
    arrays = logits, labels, dloss
    key = key_of(function, arrays, ignored, target)
    if not is_known(key):
        if function is cross_entropy and requires_gradient(logits):
            named = {"logits": logits, "labels": labels}
            return [recorded("cross_entropy", named, ignore_index=ignored, target=target)]
        _check(function.__name__, logits, labels, dloss, ignored)
    if device_kind(labels) == ON_HOST:
        _check_labels(labels, logits.shape[-1], ignored)
    if (made := again(key, arrays)) is not None:
        return made
    dtype = "float64" if dtype_name(logits) == "float64" else "float32"
    loss = None if function is cross_entropy_backward else empty(labels.shape, logits, dtype)
    gradient = None if function is cross_entropy else empty(logits.shape, logits)
    results = [x for x in (loss, gradient) if x is not None]
    if 0 not in labels.shape:
        target = target_of(target, logits)
        launch = cross_entropy_launch(logits, labels, loss, gradient, dloss, ignored, target).on(target)
        launch.run()
        remember(key, arrays, results, (), (launch,))
    return results


def cross_entropy_launch(
    logits: Array, labels: Array, loss: Array | None, gradient: Array | None, dloss: Array | None = None,
    ignored: int = IGNORED, target: str | None = None,
) -> Launch:  # fmt: skip
    """The launch of `cross_entropy` into loss and gradient, contiguous where they are no None, for a target."""
    (rows, stride), columns = as_rows(logits), logits.shape[-1]
    labels, dloss = (None if x is None else as_rows(x.reshape(-1))[0] for x in (labels, dloss))
    family, block, warps = family_of_warps(target), triton.next_power_of_2(columns), None
    dtype = COMPUTED_IN[dtype_name(logits)]
    constants = {"LOWEST": LOWEST[dtype], "FLOAT": dtype}
    made = Launch(
        cross_entropy_kernel,
        (rows.shape[0],),
        (rows, labels, dloss, loss, gradient, stride, columns, ignored),
        constants | {"BLOCK": block},
    )
    if family == "cuda" and columns > LONG:
        return of_long_rows(made, 32 * LONG_WARPS, 16 // item_size(logits), TAIL).on(None, LONG_WARPS, 1)
    if family == "cuda":
        block = min(block, BLOCK)
        warps = max(1, min(16, block // 512))
    else:
        blocks = choose_rows(logits, target)
        block, warps = min(block, blocks.piece), blocks.warps
    return made._replace(constants=constants | {"BLOCK": block}).on(None, warps, None if family is None else 1)


def of_long_rows(launch: Launch, lanes: int, each: int, tail: int) -> Launch:
    """A launch of `cross_entropy_kernel` as one of `cross_entropy_long_kernel`, of rows of `tail` blocks, which are one
    at least, or more.
    """
    columns, block = launch.arguments[-2], lanes * each
    behind = (triton.cdiv(columns, block) - tail) * block
    constants = {name: launch.constants[name] for name in ("LOWEST", "FLOAT")}
    constants |= {"LANES": lanes, "EACH": each, "TAIL": tail}
    return launch._replace(kernel=cross_entropy_long_kernel, arguments=(*launch.arguments, behind), constants=constants)


def _check(function: str, logits: Array, labels: Array, dloss: Array | None, ignored: Any) -> None:
    others = {} if dloss is None else {"dloss": dloss}
    require_one_kind(logits=logits, labels=labels, **others)
    require_no_gradient(function, logits, dloss)
    for x in (logits, *(x.reshape(-1) for x in others.values())):
        check_rows(function, x)
    if not isinstance(ignored, Integral):
        raise ArgumentError(f"{function}: ignore_index must be an integer", expected="an int", found=f"{ignored!r}")
    if dtype_name(labels) not in ("int32", "int64"):
        raise ArgumentError(f"{function}: unsupported labels", expected="int32 or int64", found=dtype_name(labels))
    if any(x.shape != logits.shape[:-1] for x in (labels, *others.values())) or not logits.shape[-1]:
        raise ArgumentError(
            f"{function}: the shapes do not fit",
            expected="logits [..., columns] of a column or more, and one label a row (and one dloss)",
            found=" and ".join(str(tuple(x.shape)) for x in (logits, labels, *others.values())),
        )


def _check_labels(labels: Array, columns: int, ignored: int) -> None:
    used = labels[labels != ignored]
    if len(used) and not 0 <= int(used.min()) <= int(used.max()) < columns:
        raise ArgumentError(
            "a label is no column", expected=f"0 to {columns - 1}, or {ignored}", found=f"{used.min()} to {used.max()}"
        )


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: a length that no block divides, a row that is ignored."""
    columns = 700 if "long" in name else 5000
    logits, labels = rng.standard_normal((5, columns), np.float32), np.array([3, columns - 1, -100, columns - 200, 0])
    loss, gradient = np.zeros(5, np.float32), np.zeros_like(logits)
    launch = cross_entropy_launch(logits, labels, loss, gradient, np.ones(5, np.float32))
    return example_of(name, launch, of_long_rows(launch, lanes=64, each=2, tail=1))
