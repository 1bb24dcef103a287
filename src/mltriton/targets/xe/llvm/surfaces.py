"""Which matrices the hardware takes for 2D block accesses: proved, asked when a kernel is launched, or by the kernel.

Level: tt to intrinsic -> llvm. Takes a function; changes nothing. What an access asks of its surface
(`block_limits.py`) and is not proved is asked at the launch where arguments may prove it, and otherwise in the kernel:
where addresses or sizes are loaded, or sizes depend on the program's place. Guarantees: the answers depend on the
function alone, so that every version of a kernel asks the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast

from mltriton.analysis.block_io import BlockOperation, Maker
from mltriton.analysis.block_pointer_roots import origins
from mltriton.analysis.bounds import HIGHEST, Expression, Known, evaluate
from mltriton.analysis.launch_values import LaunchValues, Traced
from mltriton.dialects import tt
from mltriton.ir.operation import Value
from mltriton.ir.types import PointerType, TensorDescType, block_of, byte_width
from mltriton.targets.base import Questions
from mltriton.targets.xe.block_limits import (
    X_BYTES,
    Access,
    Block,
    Guard,
    Number,
    Relation,
    Surface,
    advice,
    check_surface,
    in_words,
)
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.launch_guards import Condition, Use, arguments_of
from mltriton.targets.xe.launch_guards import Surface as Asked


class KernelGuard(NamedTuple):
    """Limits that the kernel asks of the matrix that `maker` describes; `columns` are numbers that must be multiples
    for the column at which an access starts to be one. Elements have `size` bytes.
    """

    maker: Maker
    size: int
    transposed: bool
    limits: tuple[Guard, ...]
    columns: tuple[Value, ...]

    @property
    def all_limits(self) -> tuple[Guard, ...]:
        """The limits, where the column itself is at hand."""
        on_column = Guard("x", Relation.MULTIPLE, max(1, X_BYTES // self.size))
        return (*self.limits, on_column) if self.columns else self.limits


class LaunchGuard(NamedTuple):
    """A surface for the launch to ask about, with the limits behind its conditions: a matrix of elements of `size`
    bytes in the array that is argument `matrix`.
    """

    asked: Asked
    limits: tuple[Guard, ...]
    matrix: str
    size: int


class Verdict(NamedTuple):
    """What is known of an access: `broken` says what is wrong for certain; otherwise it is one of the hardware if all
    surfaces of `launch` are accepted and all of `kernel` hold.
    """

    broken: str | None = None
    launch: tuple[LaunchGuard, ...] = ()
    kernel: tuple[KernelGuard, ...] = ()


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

    def questions(self, op: BlockOperation, transposed: bool) -> Questions:
        """What is known of an access, in words."""
        verdict = self.of(op, transposed)
        in_kernel = dict.fromkeys(limit for guard in verdict.kernel for limit in guard.all_limits)
        at_launch = list(dict.fromkeys(limit for guard in verdict.launch for limit in guard.limits))
        sizes = [guard.size for guard in verdict.launch]
        return Questions(
            in_words(at_launch), in_words(list(in_kernel)), verdict.broken, advice(at_launch, max(sizes, default=1))
        )

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
        asked = tuple(_condition(guard, fields) for guard in at_launch)
        launch = LaunchGuard(asked, tuple(at_launch), self._array(fields["base"].expression), size)
        kernel = (self._guard(maker, size, transposed, in_kernel, fields["x"]),) if in_kernel else ()
        return Verdict(None, (launch,) if asked else (), kernel)

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
        return self._values.offset(op.ptr, dim)

    def _guard(self, maker: Maker, size: int, transposed: bool, limits: Sequence[Guard], column: Traced) -> KernelGuard:
        """A column that is a multiple where what it is made of is one needs no question of its own."""
        on_column = next((guard for guard in limits if guard.field == "x"), None)
        if on_column is None:
            return KernelGuard(maker, size, transposed, tuple(limits), ())
        assert isinstance(on_column.bound, int)
        step = Known(divisor=on_column.bound)
        proved = evaluate(column.expression, self._argument, step).divisor % on_column.bound == 0
        columns = column.opaque if proved else ()
        kept = tuple(guard for guard in limits if guard != on_column or not proved)
        return KernelGuard(maker, size, transposed, kept, columns)

    def _known(self, value: Traced) -> Known:
        return evaluate(value.expression, self._argument)

    def _argument(self, number: int) -> Known:
        return Known(divisor=self._divisibility[number])


class Answers:
    """What the code at hand may take for granted: surfaces that are not `failing`, and what was asked in the kernel."""

    def __init__(self, surfaces: Surfaces, failing: Collection[Asked] = ()) -> None:
        self.surfaces = surfaces
        self.decided: dict[KernelGuard, bool] = {}
        self._failing = frozenset(failing)
        self._relied: dict[Asked, tuple[LaunchGuard, dict[str, None]]] = {}

    @property
    def relied(self) -> list[Asked]:
        """The surfaces of the accesses so far, for the launch to ask about."""
        return list(self._relied)

    @property
    def uses(self) -> list[Use]:
        """What the surfaces are, and where they are accessed."""
        return [
            Use(guard.matrix, guard.size, tuple(limit.field for limit in guard.limits), tuple(places))
            for guard, places in self._relied.values()
        ]

    def of(self, op: BlockOperation, transposed: bool) -> bool | tuple[KernelGuard, ...]:
        """Whether the hardware does an access; or what the kernel must ask first."""
        verdict = self.surfaces.of(op, transposed)
        if verdict.broken is not None:
            return False
        for guard in verdict.launch:
            self._relied.setdefault(guard.asked, (guard, {}))[1][_place(op)] = None
        asked = [guard.asked for guard in verdict.launch]
        if not self._failing.isdisjoint(asked) or any(self.decided.get(g) is False for g in verdict.kernel):
            return False
        return tuple(guard for guard in verdict.kernel if guard not in self.decided) or True


def _place(op: BlockOperation) -> str:
    """An access as a line of the program, and what it does."""
    place = op.loc.place
    what = "store" if isinstance(op, tt.Store | tt.DescriptorStore) else "load"
    return f"{what} at {place.file}:{place.line}" if place is not None else what


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
