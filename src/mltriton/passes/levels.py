"""The rules of each level: what a module may hold.

Level: all. `verify_level` reads the module attribute `mltriton.level` (`tt` when absent) and checks the table of
docs/architecture.md; `verify_module` checks all that `ir/verifier.py` does as well, in one walk. At level `intrinsic`
the table of the target that the module names holds, too. Raises `VerificationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mltriton.dialects import gpu, ttg, ttng
from mltriton.ir.module import Module, is_warp_level, level_of
from mltriton.ir.operation import Operation
from mltriton.ir.rejection import OperationError, reject
from mltriton.passes.agreement import BlockRule, EncodingRules, encoded, in_one_warp, with_lanes

Rule = Callable[[Operation], None]

# What a program whose tensors belong to one warp each may hold at `tt` already: the user wrote it.
WARP_LEVEL_OPERATIONS = (
    gpu.SubgroupId,
    ttg.LocalAlloc,
    ttg.LocalLoad,
    ttg.LocalStore,
    ttg.MemDescSubview,
    ttg.CrossWarpReduce,
    ttg.CrossWarpScan,
)


LOOP_NESTS = ("tile.nest", "tile.fill", "tile.yield", "tile.pack")  # of a target whose blocks lie in memory


Known = dict[tuple[Any, ...], set[tuple[Any, ...]]]


def verify_module(module: Module, known: Known | None = None) -> None:
    """Check everything: SSA, operations, and the rules of the module's level. `known` is for programs that become one
    of the other: what was right in one of them is right in the next (`ir/verifier.py`), as far as the attributes of
    the module, which choose the rules, are the same.
    """
    from mltriton.ir.verifier import located, verify  # A compilation verifies only where it is asked to.

    try:
        rules = _checks(module, _rules_of, encoding_rules)
    except OperationError as error:
        raise located(error, module) from None
    verify(module, rules, None if known is None else known.setdefault((*module.attributes.items(),), set()))


def verify_level(module: Module) -> None:
    """Check the rules of the module's level."""
    _check(module, _rules_of, encoding_rules)


def verify_encodings(module: Module) -> None:
    """Check the rules of the module's level that are about encodings, and nothing else."""
    _check(module, encoding_rules)


def _check(module: Module, *groups: Callable[[Module], Iterator[Rule]]) -> None:
    try:
        rules = _checks(module, *groups)
        for op in module.walk():
            for rule in rules:
                rule(op)
    except OperationError as error:
        from mltriton.ir.verifier import located  # Only a failure needs it.

        raise located(error, module) from None


def _checks(module: Module, *groups: Callable[[Module], Iterator[Rule]]) -> list[Rule]:
    return [_naming(rule) for group in groups for rule in group(module)]


def _naming(rule: Rule) -> Rule:
    """The rule; an encoding that says nothing of a block of some shape is an error of the operation."""

    def checked(op: Operation) -> None:
        try:
            rule(op)
        except ValueError as error:
            reject(op, str(error))

    return checked


def _rules_of(module: Module) -> Iterator[Rule]:
    """The rules of a level that are not about encodings."""
    level = level_of(module)
    if level not in _RULES:
        reject(module, "unknown level", expected=" or ".join(_RULES), found=level)
    yield _tt_of_warps if level == "tt" and is_warp_level(module) else _RULES[level]
    if level == "intrinsic":
        from mltriton.targets.limits import limits_of  # Other levels have no limits.

        limits = limits_of(module)
        if limits is not None:
            yield limits


def encoding_rules(module: Module) -> Iterator[Rule]:
    """What the level wants of encodings, as a rule for each operation."""
    yield EncodingRules(_BLOCKS[level_of(module)] if _has_encodings(module) else None)


def _has_encodings(module: Module) -> bool:
    """Whether blocks have encodings: where warps share them, and where lanes matter."""
    if level_of(module) != "intrinsic":
        return level_of(module) != "tt"
    from mltriton.targets.limits import lanes_matter  # As above.

    return lanes_matter(module)


_ALSO_TT = ttng.TensorMap | ttng.GridSize | ttng.GridDependencyWait | ttng.LaunchDependents


def _tt(op: Operation) -> None:
    if (
        op.name.partition(".")[0] in ("ttg", "ttig", "tile")
        or (op.name.startswith("ttng.") and not isinstance(op, _ALSO_TT))
        or isinstance(op, gpu.SubgroupId)
    ):
        reject(op, "the operation belongs to a later level than tt")


def _tt_of_warps(op: Operation) -> None:
    if not isinstance(op, WARP_LEVEL_OPERATIONS):
        _tt(op)


def _before_chunks(op: Operation) -> None:
    if op.name.startswith("tile."):
        reject(op, "the operation belongs to the intrinsic level")


def _warp(op: Operation) -> None:
    if op.name not in LOOP_NESTS:
        _before_chunks(op)


def _intrinsic(op: Operation) -> None:
    if isinstance(op, ttg.CrossWarpReduce | ttg.CrossWarpScan):
        reject(op, "the operation belongs to an earlier level than intrinsic")


_RULES: dict[str, Rule] = {"tt": _tt, "ttg": _before_chunks, "warp": _warp, "intrinsic": _intrinsic}
_BLOCKS: dict[str, BlockRule] = {"ttg": encoded, "warp": in_one_warp, "intrinsic": with_lanes}
