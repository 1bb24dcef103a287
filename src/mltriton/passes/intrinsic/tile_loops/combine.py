"""Element-wise operations on forms: affine where they can be, on scalars where all are uniform, on chunks otherwise.

Level: warp to intrinsic. `combine` takes the forms of an operation's operands at an index and gives its result's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import arith, tt
from mltriton.ir.operation import Operation
from mltriton.ir.types import F32, TensorType, Type
from mltriton.passes.intrinsic.tile_loops.forms import (
    Affine,
    Form,
    FormArithmetic,
    Uniform,
    Vector,
    is_integer,
    is_uniform,
)

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator


def are_affine(forms: Sequence[Form]) -> bool:
    """Whether all forms are affine."""
    for form in forms:  # noqa: SIM110 - called for every operation: three times as fast as all()
        if form.__class__ is not Affine:
            return False
    return True


def are_uniform(forms: Sequence[Form]) -> bool:
    """Whether no form depends on the lane."""
    for form in forms:  # noqa: SIM110
        if not is_uniform(form):
            return False
    return True


def lanes_of(forms: list[Form], lanes: int) -> int:
    """The number of lanes: of the chunks among the forms where there are any."""
    for form in forms:
        if isinstance(form, Vector):
            return cast(TensorType, form.value.type).size
    return lanes


def combine(
    e: Evaluator, cls: type[Operation], forms: list[Form], element: Type, lanes: int, attributes: Mapping[str, Any]
) -> Form:
    """An elementwise operation on forms: affine where it can be, on scalars where all are uniform, else on chunks.

    A chunk of f32 is divided by a scalar through its reciprocal (docs/architecture.md, "Semantics").
    """
    if cls is arith.DivF and element is F32 and is_uniform(forms[1]) and not is_uniform(forms[0]):
        one = Uniform(e.emitter.number(1.0, element))
        cls, forms = arith.MulF, [forms[0], combine(e, arith.DivF, [one, forms[1]], element, lanes, {})]
    affine = AFFINE.get(cls)
    if affine is not None and are_affine(forms):
        found = affine(e.arithmetic, *forms, element)
        if found is not None:
            return found
    arithmetic = e.arithmetic
    if are_uniform(forms):
        scalars = [arithmetic.scalar(form) for form in forms]
        return arithmetic.wrap(e.emitter.pure(cls, scalars, element, attributes))
    lanes = lanes_of(forms, lanes)
    whole = cls is arith.Select and is_uniform(forms[0])
    chunks = [
        arithmetic.scalar(form) if whole and i == 0 else arithmetic.chunk(form, lanes) for i, form in enumerate(forms)
    ]
    return Vector(e.emitter.pure(cls, chunks, TensorType((lanes,), element), attributes))


def _add(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    return a.add(x, y)


def _subtract(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    return a.subtract(x, y)


def _multiply(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    return a.multiply(x, y)


def _shift_left(a: FormArithmetic, x: Affine, y: Affine, element: Type) -> Form | None:
    if y.base is None and y.stride == 0 and 0 <= y.const < 31:
        return a.times(x, Affine(x.type, None, 1 << y.const, 0))
    return None


def _move(a: FormArithmetic, pointer: Affine, offset: Affine, element: Type) -> Form | None:
    return a.move(pointer, offset)


def _resize(a: FormArithmetic, x: Affine, element: Type) -> Form | None:
    return a.resize(x, element) if is_integer(element) and is_integer(x.type) else None  # type: ignore[arg-type]


AFFINE: dict[type[Operation], Callable[..., Form | None]] = {
    arith.AddI: _add,
    arith.SubI: _subtract,
    arith.MulI: _multiply,
    arith.ShLI: _shift_left,
    arith.ExtSI: _resize,
    arith.TruncI: _resize,
    tt.AddPtr: _move,
}
