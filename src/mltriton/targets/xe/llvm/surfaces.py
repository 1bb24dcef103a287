"""Which matrices the hardware takes for 2D block accesses: proved, checked when a kernel is launched, or by the kernel.

Level: tt to intrinsic -> llvm. Takes a function; changes nothing. What an access requires of its surface
(`block_limits.py`) and is not proved is checked at the launch where arguments may prove it, and otherwise in the
kernel: where addresses or sizes are loaded, or sizes depend on the program's id. Guarantees: the checks depend on
the function alone, so that every version of a kernel checks the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from mltriton.analysis.block_io import BlockOperation, Maker, parts
from mltriton.analysis.block_pointer_roots import origins
from mltriton.analysis.bounds import HIGHEST, Expression, Known, evaluate
from mltriton.analysis.launch_values import LaunchValues, Traced
from mltriton.dialects import tt
from mltriton.dialects.ttig import BLOCK_IO
from mltriton.ir.types import PointerType, TensorDescType, block_of, byte_width
from mltriton.records import NamedTuple
from mltriton.targets.base import Guard, MatrixGuard, Relation, RunTimeChecks
from mltriton.targets.xe.block_limits import (
    X_BYTES,
    Access,
    Block,
    Number,
    Surface,
    advice,
    check_surface,
    in_words,
)
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.launch_guards import Condition, Use, arguments_of
from mltriton.targets.xe.launch_guards import Surface as Conditions


class LaunchGuard(NamedTuple):
    """A surface for the launch to ask about, with the limits behind its conditions: a matrix of elements of `size`
    bytes in the array that is argument `matrix`.
    """

    conditions: Conditions
    limits: tuple[Guard, ...]
    matrix: str
    size: int


class Verdict(NamedTuple):
    """What is known of an access: `broken` says what is wrong for certain; otherwise it is one of the hardware if all
    surfaces of `launch` are accepted and all of `kernel` hold.
    """

    broken: str | None = None
    launch: tuple[LaunchGuard, ...] = ()
    kernel: tuple[MatrixGuard, ...] = ()


_UNKNOWN_ORIGIN = Verdict("where the pointer comes from is not known")
_STORES_COLUMNS = Verdict("a block store takes rows, and columns lie next to each other in memory")
_NO_MATRIX = Verdict("it is an access to a vector, and block accesses move matrices")


class Surfaces:
    """The surfaces of one function. `divisibility` is what callers promise of each parameter."""

    def __init__(self, function: tt.Func, device: Device, warps: int, divisibility: Sequence[int]) -> None:
        self._device = device
        self._parameters = function.body.block.arguments
        self._values = LaunchValues(function, warps)
        self._divisibility = divisibility
        self._verdicts: dict[tuple[BlockOperation, bool], Verdict] = {}

    def of(self, op: BlockOperation, transposed: bool) -> Verdict:
        """What is known of an access; with `transposed`, columns of the block are rows in memory."""
        key = (op, transposed)
        if key not in self._verdicts:
            self._verdicts[key] = self._of(op, transposed)
        return self._verdicts[key]

    def expected(self, op: BlockOperation) -> Verdict:
        """The same, the way that the strides say the block lies in memory."""
        makers = self._makers(op)
        if any(len(maker.shape) < 2 for maker in makers):
            return _NO_MATRIX
        one = [all(self._known(self._values.of(m.strides[dim])).number == 1 for m in makers) for dim in (-1, -2)]
        transposed = not one[0] and one[1]
        if transposed and isinstance(op, tt.Store | tt.DescriptorStore):
            return _STORES_COLUMNS
        return self.of(op, transposed)

    def run_time_checks(self, op: BlockOperation, transposed: bool | None) -> RunTimeChecks:
        """What is known of an access, in words; None: the way that the strides say the block lies in memory."""
        verdict = self.expected(op) if transposed is None else self.of(op, transposed)
        in_kernel = dict.fromkeys(limit for guard in verdict.kernel for limit in guard.limits)
        in_kernel |= {Guard("x", Relation.MULTIPLE, g.step): None for g in verdict.kernel if g.columns}
        at_launch = list(dict.fromkeys(limit for guard in verdict.launch for limit in guard.limits))
        sizes = [guard.size for guard in verdict.launch]
        told = advice(at_launch, max(sizes, default=1))
        guards = () if verdict.broken else verdict.kernel
        return RunTimeChecks(in_words(at_launch), in_words(list(in_kernel)), verdict.broken, told, guards)

    def _makers(self, op: BlockOperation) -> Sequence[Maker]:
        if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
            return origins(op.desc, tt.MakeTensorDesc)
        return origins(op.ptr, tt.MakeTensorPtr)

    def _of(self, op: BlockOperation, transposed: bool) -> Verdict:
        makers = self._makers(op)
        if not makers:
            return _UNKNOWN_ORIGIN
        if any(len(maker.shape) < 2 for maker in makers):
            return _NO_MATRIX
        parts = [self._of_maker(op, maker, transposed) for maker in makers]
        broken = next((part.broken for part in parts if part.broken), None)
        launch = dict.fromkeys(guard for part in parts for guard in part.launch)
        kernel = dict.fromkeys(guard for part in parts for guard in part.kernel)
        return Verdict(broken, tuple(launch), tuple(kernel))

    def _of_maker(self, op: BlockOperation, maker: Maker, transposed: bool) -> Verdict:
        size = _element_bytes(maker)
        fields = self._fields(op, maker, size, (-1, -2) if transposed else (-2, -1))
        width, pitch = fields["width"], fields["pitch"]
        # Expressions tell apart arguments alone: what varies may be another number in the other one.
        covered = width.expression == pitch.expression and not (width.varies or pitch.varies)
        numbers = {name: _number(self._known(field)) for name, field in fields.items()}
        report = check_surface(self._device, Block(Access.LOAD, size, 16, 1), Surface(**numbers, covered=covered))
        if report.broken:
            return Verdict(str(report.broken[0]))
        at_launch = [guard for guard in report.guards if _is_for_launch(guard, fields)]
        in_kernel = [guard for guard in report.guards if guard not in at_launch]
        conditions = tuple(_condition(guard, fields) for guard in at_launch)
        launch = LaunchGuard(conditions, tuple(at_launch), self._array(fields["base"].expression), size)
        kernel = (self._guard(op, maker, size, transposed, in_kernel, fields["x"]),) if in_kernel else ()
        return Verdict(None, (launch,) if conditions else (), kernel)

    def _array(self, base: Expression) -> str:
        """The argument that an address is made of."""
        pointers = [n for n in arguments_of(base) if isinstance(self._parameters[n].type, PointerType)]
        return self._parameters[pointers[0]].hint or f"argument {pointers[0]}" if pointers else "memory"

    def _fields(self, op: BlockOperation, maker: Maker, size: int, dims: tuple[int, int]) -> dict[str, Traced]:
        row, column = dims
        values = self._values

        def in_bytes(elements: Traced) -> Traced:
            return values.combined("mul", 64, elements, Traced(size))

        base = values.of(maker.base)
        for dim, stride in enumerate(maker.strides[:-2]):
            moved = in_bytes(values.combined("mul", 64, self._offset(op, maker, dim), values.of(stride)))
            base = values.combined("add", 64, base, moved)
        return {
            "base": base,
            "width": in_bytes(values.of(maker.shape[column])),
            "height": values.of(maker.shape[row]),
            "pitch": in_bytes(values.of(maker.strides[row])),
            "x": self._offset(op, maker, len(maker.shape) + column),
        }

    def _offset(self, op: BlockOperation, maker: Maker, dim: int) -> Traced:
        if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
            return self._values.of(op.indices[dim])
        return self._values.of(cast(tt.MakeTensorPtr, maker).offsets[dim])

    def _guard(
        self, op: BlockOperation, maker: Maker, size: int, transposed: bool, limits: Sequence[Guard], column: Traced
    ) -> MatrixGuard:
        """A column that is a multiple where what it is made of is one needs no check of its own."""
        kept, on_column = (tuple(g for g in limits if (g.field == "x") is about) for about in (False, True))
        step = X_BYTES // size if on_column else 1
        proved = evaluate(column.expression, self._argument, Known(divisor=step)).divisor % step == 0
        own = parts(op)
        if not proved and own is None:
            kept = (*kept, *on_column)  # Nothing proves it: it stays open.
        offsets = () if own is None else (own[1][-2 if transposed else -1],)
        columns = () if not on_column else column.opaque if proved else offsets
        return MatrixGuard(
            maker.base, tuple(maker.shape), tuple(maker.strides), size, transposed, kept, tuple(columns), step
        )

    def _known(self, value: Traced) -> Known:
        return evaluate(value.expression, self._argument)

    def _argument(self, number: int) -> Known:
        return Known(divisor=self._divisibility[number])


class Legality:
    """What code may take for granted: surfaces that are not `failing`, and what `guard-block-io` found."""

    def __init__(self, surfaces: Surfaces, failing: Collection[Conditions] = ()) -> None:
        self.surfaces = surfaces
        self._failing = frozenset(failing)
        self._relied: dict[Conditions, tuple[LaunchGuard, dict[str, None]]] = {}

    @property
    def relied(self) -> list[Conditions]:
        """The surfaces of the accesses so far, for the launch to ask about."""
        return list(self._relied)

    @property
    def uses(self) -> list[Use]:
        """What the surfaces are, and where they are accessed."""
        return [
            Use(guard.matrix, guard.size, tuple(limit.field for limit in guard.limits), tuple(locations))
            for guard, locations in self._relied.values()
        ]

    def of(self, op: BlockOperation, transposed: bool) -> bool:
        """Whether the hardware does an access; not where a kernel should have checked and did not."""
        verdict = self.surfaces.of(op, transposed)
        if verdict.broken is not None:
            return False
        for guard in verdict.launch:
            self._relied.setdefault(guard.conditions, (guard, {}))[1][_location(op)] = None
        held = not verdict.kernel or BLOCK_IO in op.attributes
        return held and self._failing.isdisjoint(guard.conditions for guard in verdict.launch)


def _location(op: BlockOperation) -> str:
    """An access as a line of the program, and what it does."""
    location = op.loc.in_source
    what = "store" if isinstance(op, tt.Store | tt.DescriptorStore) else "load"
    return f"{what} at {location.file}:{location.line}" if location is not None else what


def _element_bytes(maker: Maker) -> int:
    type_ = maker.result.type
    block = type_.block if isinstance(type_, TensorDescType) else block_of(type_)
    assert block is not None
    return byte_width(block.element)


def _number(known: Known) -> Number:
    return Number(known.number, known.divisor, max(known.least or 0, 0), known.most)


def _is_for_launch(guard: Guard, fields: Mapping[str, Traced]) -> bool:
    """Whether the launch can say: where nothing varies, and of a divisor where arguments alone may prove it."""
    field = fields[guard.field]
    if guard.relation is Relation.MULTIPLE:
        best = evaluate(field.expression, _best).divisor
        return not field.varies or best % cast(int, guard.bound) == 0
    bound = fields[guard.bound] if isinstance(guard.bound, str) else field
    return not (field.varies or bound.varies)


def _best(_: int) -> Known:
    """An argument that is a multiple of anything."""
    return Known(divisor=HIGHEST)


def _condition(guard: Guard, fields: Mapping[str, Traced]) -> Condition:
    bound = fields[guard.bound].expression if isinstance(guard.bound, str) else guard.bound
    return (guard.relation.value, fields[guard.field].expression, bound)
