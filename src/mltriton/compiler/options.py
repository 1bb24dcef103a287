"""How a kernel is compiled, besides its arguments.

Level: user. Guarantees: an option that there is not, or a value that no target could honour, is an `OptionError` that
names what it may be.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mltriton.errors import OptionError
from mltriton.language.constants import unwrap
from mltriton.records import record
from mltriton.targets.options import known_options

# Upstream's options that ask for what is not here, with the values that ask for nothing, and what to do instead.
REFUSED: dict[str, tuple[tuple[object, ...], str]] = {
    "cluster_dims": ((None, (1, 1, 1)), "Programs are no clusters: leave it out."),
    "launch_cluster": ((None, False), "Programs are no clusters: leave it out."),
    "ir_override": ((None,), "Compile the text with triton.compile and launch what it gives."),
    "stream": ((None,), "Launches go to torch's current stream: with torch.cuda.stream(...)."),
}


class CountError(OptionError, AssertionError):
    """A number of warps, or of CTAs, that is no power of two: upstream's assertion."""


@record(frozen=True)
class Options:
    """How a kernel is compiled, besides its arguments.

    `sanitize`: every access is checked against the memory of the arrays passed (`passes/tt/check_accesses.py`).
    `num_ctas` changes nothing: a program stays one. `debug`: assertions are checked, and with `sanitize_overflow`
    whether integers overflow. `warp_level` (the kernel's own mark when None): every tensor belongs to one warp.
    `of_targets`: those that targets declare (`targets/options.py`), by name, in order.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    debug: bool = False
    sanitize: bool = False
    sanitize_overflow: bool = True
    warp_level: bool | None = None
    of_targets: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_stages", "num_ctas"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (0 if name == "num_stages" else 1):
                raise OptionError(f"{name} must be a positive integer", found=repr(value))
        for name in ("num_warps", "num_ctas"):
            value = getattr(self, name)
            if value & (value - 1):
                less = 1 << value.bit_length() - 1
                expected = f"{less} or {2 * less}"
                raise CountError(
                    f"{name} must be a power of two",
                    expected=expected,
                    found=str(value),
                    upstream=f"{name} must be a power of 2",
                )
        if self.warp_level is not None and type(self.warp_level) is not bool:
            raise OptionError("warp_level must be a bool", found=repr(self.warp_level))


# What every target takes, by name.
OPTIONS = tuple(item.name for item in fields(Options) if item.name != "of_targets")


def options_of(**given: Any) -> Options:
    """The options of keyword arguments; `OptionError` for unknown ones, and for what upstream's ask for in vain."""
    values = {name: unwrap(value) for name, value in given.items()}
    for name in REFUSED.keys() & values.keys():
        (usual, *_), hint = REFUSED[name]
        if (found := values.pop(name)) not in REFUSED[name][0]:
            raise OptionError(f"{name} is not taken", expected=repr(usual), found=repr(found), hint=hint)
    further = sorted(name for name in values if name not in OPTIONS)
    for name in further:
        if name not in known_options():
            known = ", ".join((*OPTIONS, *known_options()))
            raise OptionError(f"there is no option {name!r}", expected=f"one of {known}")
    of_targets = tuple((name, values.pop(name)) for name in further)
    return Options(**values, of_targets=of_targets)
