"""Region moves lane by lane: the bytes of each lane's result come from where the moves read them.

Level: `llvm`. What a move reads is linear in the address that it writes, as changes of layout are, so that the general
rule for these (`simt/moves.py`) finds what stays in its lane and what a shuffle has to bring.
"""

from __future__ import annotations

from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.types import Type, Value, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.moves import move
from mltriton.targets.xe.block_limits import SUB_GROUP
from mltriton.targets.xe.layouts.region_moves import RegionMoves
from mltriton.targets.xe.llvm import calls

_LANE_BITS = SUB_GROUP.bit_length() - 1


def write(module: Module, symbol: str, moves: RegionMoves, source: Type, result: Type) -> str:
    """A function with the parameter and the result of the one that has this name."""
    name = "emulated_" + symbol.replace(".", "_")
    f = module.function(name, result, [("held", source)], extra="convergent noinline ")
    [held] = f.parameters
    # What is moved may be longer than the words of a lane: then several lanes have it.
    unit = min(moves.unit, source.scalar.bytes, result.scalar.bytes)
    from_, to = _units(source, unit), _units(result, unit)
    start = moves.source_of(0)
    bases = {
        dim: [((moves.source_of(place * unit) ^ start) // unit,) for (place,) in places]
        for dim, places in zip(to.inputs, to.bases, strict=True)
    }
    wanted = LinearLayout.of(bases, {"unit": from_.size("unit")})
    parts = move(calls, f, _taken_apart(f, held, unit), from_, wanted, (start // unit,))
    f.ret(_put_together(f, parts, result))
    return name


def _units(type_: Type, unit: int) -> LinearLayout:
    """Where in a warp's registers each unit of a lane's value is: words of all lanes next to each other."""
    per_word = type_.scalar.bytes // unit
    inside, words = per_word.bit_length() - 1, type_.lanes.bit_length() - 1
    steps = [(1 << bit,) for bit in range(inside + _LANE_BITS + words)]
    lanes = slice(inside, inside + _LANE_BITS)
    bases = {"register": [*steps[:inside], *steps[lanes.stop :]], "lane": steps[lanes], "warp": []}
    return LinearLayout.of(bases, {"unit": 1 << len(steps)})


def _taken_apart(f: Function, value: Value, unit: int) -> list[Value]:
    per_word = value.type.scalar.bytes // unit
    words = [f.extract(value, number) for number in range(value.type.lanes)]
    parts = [f.bitcast(word, vector(f"i{8 * unit}", per_word)) for word in words]
    return [f.extract(part, number) for part in parts for number in range(per_word)]


def _put_together(f: Function, parts: list[Value], type_: Type) -> Value:
    per_word = len(parts) // type_.lanes
    made = Value(type_, "poison")
    for word in range(type_.lanes):
        held = Value(parts[0].type.with_lanes(per_word), "poison")
        for number in range(per_word):
            held = f.insert(held, parts[word * per_word + number], number)
        made = f.insert(made, f.bitcast(held, type_.scalar), word)
    return made
