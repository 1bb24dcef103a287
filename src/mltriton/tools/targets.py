"""`mltriton targets`: the targets there are, what a warp is on each, and the compile options that each declares.

Level: user. The lists are those that the compiler reads: names, specifications and option fields.
"""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from mltriton.compiler.options import Options
from mltriton.errors import DeviceError
from mltriton.targets.options import known_options
from mltriton.targets.target import find_target, names


def list_targets() -> str:
    """A line for each target, then one for each option."""
    width = max(map(len, names()))
    lines = [f"{name:<{width}}  {_about(name)}" for name in names()]
    common = [f"{item.name}={item.default!r}" for item in fields(Options) if item.name != "of_targets"]
    lines += ["", f"Options of every target: {', '.join(common)}"]
    lines += [_declared(name, *known) for name, known in known_options().items()]
    return "\n".join(lines)


def _about(name: str) -> str:
    target = find_target(name)
    try:
        spec = target.spec
    except DeviceError as absent:  # It stands for the device of this machine.
        return absent.message
    lanes = f"{spec.warp_size} lane{'s' * (spec.warp_size > 1)} a warp"
    if spec.wide_warps is not None:
        lanes += f" (or {spec.wide_warps.lanes})"
    code = f"becomes {', '.join(target.texts)}" if target.can_run else "no machine code"
    warps = "one warp" if spec.workgroup_warps == 1 else f"at most {spec.workgroup_warps or spec.max_warps} warps"
    return f"{lanes}, {warps} a program; {code}"


def _declared(name: str, item: Field[Any], families: tuple[str, ...]) -> str:
    choices = item.metadata["choices"]
    values = f" (one of {', '.join(choices)})" if choices else ""
    return f"Option of {' and '.join(families)}: {name}={item.default!r}{values}: {item.metadata['says']}"
