"""What emission functions for Xe share besides what those of every GPU do (`simt/context.py`).

Level: intrinsic -> llvm. Blocks are accessed as is legal for their matrices; elements move by regions where
that takes fewer instructions than shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.layouts.conversions import Words, conversion
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.types import Value
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Form, Lanes
from mltriton.targets.xe.block_limits import SUB_GROUP
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.layouts.region_moves import RegionMoves, cheaper_moves
from mltriton.targets.xe.llvm.machine import XeMachine
from mltriton.targets.xe.llvm.region_calls import calls_of, moved, sizes
from mltriton.targets.xe.llvm.surfaces import Legality


class XeEmitter(Emitter):
    """The state of one kernel's emission."""

    def __init__(
        self,
        module: Module,
        function: Function,
        machine: XeMachine,
        warps: int,
        rules: Rules,
        elements: Rules,
        legality: Legality,
    ) -> None:
        super().__init__(module, function, machine, warps, rules, elements)
        self.device: Device = machine.device
        self.address_payloads = False  # whether loops keep those of block accesses
        self.legality = legality

    def regrouped(
        self, lanes: Lanes, source: LinearLayout, wanted: LinearLayout, form: Form, origin: tuple[int, ...]
    ) -> Lanes:
        """The registers of the elements of `wanted`, moved by `origin`: by moves of regions, where they are fewer than
        other instructions would be.
        """
        made = self._by_regions(lanes, source, wanted, form, origin)
        return made or super().regrouped(lanes, source, wanted, form, origin)

    def _by_regions(
        self, lanes: Lanes, source: LinearLayout, wanted: LinearLayout, form: Form, origin: tuple[int, ...]
    ) -> Lanes | None:
        words = Words(*(of.type.bits // 8 for of in (lanes.form, form)))
        moves = cheaper_moves(conversion(source, wanted), form.element.bits // 8, words, origin)
        if moves is None or form.element != lanes.form.element or source.count("lane") != SUB_GROUP:
            return None
        made: dict[int, Value] = {}
        for call in calls_of(moves, *map(sizes, (lanes.form, form))) or ():
            inputs = [lanes.values[number] for number in call.inputs]
            made.update(zip(call.outputs, self.by_regions(inputs, call.moves, form, len(call.outputs)), strict=True))
        return Lanes(form, [made[number] for number in range(len(made))]) if made else None

    def by_regions(self, inputs: Sequence[Value], moves: RegionMoves, form: Form, count: int) -> list[Value]:
        """`count` values of a form, by moves from the inputs, which lie one after the other."""
        return moved(self.function, inputs, moves, form.type, count)
