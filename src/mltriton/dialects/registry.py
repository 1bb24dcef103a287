"""Finds an operation class by its name. Level: all."""

from __future__ import annotations

from functools import cache

from mltriton.dialects import arith, gpu, math, scf, tile, tt, ttg, ttig, ttng
from mltriton.ir import module
from mltriton.ir.operation import Operation

DIALECTS = (module, arith, math, scf, gpu, tt, ttg, ttig, ttng, tile)


@cache
def operations() -> dict[str, type[Operation]]:
    """Every registered operation class by its full name (`tt.load`)."""
    return {
        item.name: item
        for dialect in DIALECTS
        for item in vars(dialect).values()
        if isinstance(item, type) and issubclass(item, Operation) and item.name != Operation.name
    }


@cache
def _by_any_name() -> dict[str, type[Operation]]:
    classes = operations()
    return {**{old: cls for cls in classes.values() for old in cls.old_names}, **classes}


def find_operation(name: str) -> type[Operation] | None:
    """The class of that name, also of an older one (`triton_gpu.convert_layout`, `tt.experimental_descriptor_load`)."""
    found = _by_any_name().get(name.replace("triton_gpu.", "ttg."))
    if found is None:
        from mltriton.dialects import upstream  # Only texts of upstream's have its operations.

        found = upstream.NAMES.get(name)
    return found
