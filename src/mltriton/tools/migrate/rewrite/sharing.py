"""What a person would write once: identical descriptors, counters that run alike, conditions that are asserted twice.

Level: source text, after all rules. Touches only what the migration wrote, in the functions that it changed.
Guarantees: every use reads the value that it read before. The proofs are the ones of `bounds.py`, on the new text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.flow import Definition
from mltriton.tools.migrate.read.parse import Source
from mltriton.tools.migrate.read.syntax import code_of, cst, names_in, walk
from mltriton.tools.migrate.rewrite.edits import Edits, Replacement

_SHORTEST = 3  # characters of a name that several descriptors have in common
_MADE = ("make_tensor_descriptor", "static_assert")
_STEP = re.compile(r"^(?:BLOCK_?(?:SIZE_?)?|B)([A-Z]|[A-Z]{2,})$")  # BK, BLOCK_K, BLOCK_SIZE_K


@dataclass(frozen=True)
class Old:
    """The words of the old file, and its text without white space; `taken`: words of the new file."""

    words: frozenset[str]
    text: str
    taken: set[str]


@dataclass
class Function:
    """A function of the new text."""

    source: Source
    node: cst.FunctionDef
    old: Old

    def __post_init__(self) -> None:
        self.pointers = Pointers(self.source, self.node)
        self.flow = self.pointers.flow
        self.bounds = Bounds(self.source, self.pointers)

    def is_new(self, name: str) -> bool:
        """Whether the migration introduced a variable."""
        return name not in self.old.words

    def is_same(self, node: cst.BaseExpression, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether an expression has one value at two statements; ranges count as values."""
        around = first in self.flow.parents[second]
        if not around and not self.flow.dominates(first, second) and self.flow.in_loop(first):
            return False
        one, other = self.flow.before[first], self.flow.before[second]
        same = all(one.get(name) == other.get(name) for name in names_in(node))
        return same and all(self._is_pure(each) for each in walk(node))

    def _is_pure(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.NamedExpr | cst.Lambda | cst.Await):
            return False
        return (
            not isinstance(node, cst.Call)
            or self.source.callee(node) in (*_MADE, "arange")
            or (self.bounds.is_pure_call(node))
        )

    def is_elif(self, statement: cst.CSTNode) -> bool:
        """Whether a branch is the `elif` of another."""
        return isinstance(self.flow.blocks[statement][-1][0], cst.If)

    def reads(self, name: str) -> Iterator[tuple[cst.CSTNode, cst.Name]]:
        """The places where a variable is read, each with its statement."""
        for statement in self.flow.before:
            for part in _read(statement):
                yield from ((statement, n) for n in walk(part) if isinstance(n, cst.Name) and n.value == name)


def squeezed(node: cst.CSTNode) -> str:
    """The text of a node without white space."""
    return re.sub(r"\s", "", code_of(node))


def _read(statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The expressions that a statement itself evaluates."""
    match statement:
        case cst.Assign(targets=targets, value=value):
            return [value, *(each.target for each in targets if not isinstance(each.target, cst.Name))]
        case cst.AugAssign(target=target, value=value):
            return [target, value]
        case cst.AnnAssign(value=value):
            return [value] if value is not None else []
        case cst.If(test=test) | cst.While(test=test):
            return [test]
        case cst.For(iter=iterated):
            return [iterated]
        case cst.With(items=items):
            return items
        case cst.FunctionDef() | cst.ClassDef():
            return [statement]
        case _:
            return [statement]


def _defined(function: Function) -> list[Definition]:
    """Plain assignments of one name, in the order of the text."""
    order = {statement: number for number, statement in enumerate(function.flow.before)}
    found = [
        each
        for each in function.flow.definitions
        if isinstance(each.statement, cst.Assign | cst.AugAssign) and each.target is not None
        if not isinstance(each.statement, cst.Assign) or code_of(each.statement.targets[0].target) == each.name
        if not isinstance(each.statement, cst.Assign) or len(each.statement.targets) == 1
    ]
    return sorted(found, key=lambda each: order.get(each.statement, 0))


# Descriptors.


@dataclass(frozen=True)
class _Maker:
    """A statement that makes a descriptor: an assignment, or a branch that makes one on either side."""

    name: str
    statement: cst.CSTNode
    values: tuple[cst.BaseExpression, ...]
    definitions: frozenset[int]

    @property
    def key(self) -> str:
        """Makers with one key make the same."""
        return "|".join(map(squeezed, self.values))


def _makers(function: Function) -> list[_Maker]:
    """Every maker, in the order of the text."""
    made = {
        each.statement: each
        for each in _defined(function)
        if each.value is not None and function.source.callee(each.value) == "make_tensor_descriptor"
    }
    found: list[_Maker] = []
    for statement in function.flow.before:
        sides = [statement] if statement in made else [] if function.is_elif(statement) else _sides(statement)
        own = [made[side] for side in sides if side in made]
        if not own or len(own) != len(sides) or len({each.name for each in own}) > 1:
            continue
        test = (statement.test,) if isinstance(statement, cst.If) else ()
        values = (*test, *(each.value for each in own if each.value is not None))
        found.append(_Maker(own[0].name, statement, values, frozenset(each.index for each in own)))
    return found


def _sides(statement: cst.CSTNode) -> list[cst.CSTNode]:
    """The only statements on the two sides of a branch."""
    if not isinstance(statement, cst.If) or not isinstance(statement.orelse, cst.Else):
        return []
    suites = [statement.body.body, statement.orelse.body.body]
    lines = [suite[0] for suite in suites if len(suite) == 1]
    small = [line.body[0] for line in lines if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1]
    return list(small) if len(small) == 2 else []


def share_descriptors(function: Function, edits: Edits) -> bool:
    """Use a descriptor again where an identical one would be made; True where something is shared."""
    made: dict[str, list[_Maker]] = {}
    for maker in _makers(function):
        made.setdefault(maker.key, []).append(maker)
    shared = False
    renamed: dict[cst.Name, str] = {}
    for same in made.values():
        kept: dict[_Maker, set[int]] = {}  # with the definitions of its name that give the same
        names: dict[_Maker, list[str]] = {}
        for second in same:
            first = next((each for each in kept if _replace(function, each, kept[each], second, edits, renamed)), None)
            if first is None or first.name == second.name:
                kept.setdefault(first or second, set()).update(second.definitions)
            names.setdefault(first or second, []).append(second.name)
            shared = shared or first is not None
        for first, alike in names.items():
            _name_together(function, first, kept[first], alike, renamed)
    edits.replace |= {node: named(name) for node, name in renamed.items()}
    return shared


def _name_together(
    function: Function, first: _Maker, own: set[int], names: Sequence[str], renamed: dict[cst.Name, str]
) -> None:
    """Call a descriptor that stands for `p_A_11`, `p_A_22` and so on `p_A`, where nothing else is called that."""
    both = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    name = "".join(letter for letter, _ in both).rstrip("_")
    used = re.search(rf"\b{name}\b", code_of(function.node)) is not None or name in renamed.values()
    free = name.isidentifier() and not used
    every = [each for each in function.flow.definitions if each.name == first.name]
    if len(set(names)) < 2 or len(name) < _SHORTEST or not free or any(each.index not in own for each in every):
        return
    for node in walk(function.node):
        if isinstance(node, cst.Name) and renamed.get(node, node.value) == first.name:
            renamed[node] = name


def _replace(
    function: Function, first: _Maker, alike: set[int], second: _Maker, edits: Edits, renamed: dict[cst.Name, str]
) -> bool:
    """Let the uses of one descriptor use another, of which there are some already; False where it may not be there."""
    flow = function.flow
    if squeezed(second.statement) in function.old.text or not flow.dominates(first.statement, second.statement):
        return False
    if not all(function.is_same(value, first.statement, second.statement) for value in second.values):
        return False
    own = {(index, carried) for index in alike for carried in (False, True)}
    if first.name == second.name:
        before = flow.before[second.statement].get(first.name, frozenset())
        if not before or not before <= own:
            return False
    else:
        fresh = frozenset((index, False) for index in second.definitions)
        own_uses = fresh | {(index, True) for index in second.definitions}
        uses = [use for use in function.reads(second.name) if flow.before[use[0]].get(second.name, fresh) & own_uses]
        for at, _ in uses:
            reach = flow.before[at].get(first.name, frozenset())
            if flow.before[at].get(second.name) != fresh or not reach or not reach <= own:
                return False
        renamed |= {node: first.name for _, node in uses}
    edits.remove.add(second.statement)
    return True


def named(name: str) -> Replacement:
    """Another name in the place of one."""
    return lambda updated: updated.with_changes(value=name)


def drop_repeated_asserts(function: Function, edits: Edits) -> bool:
    """Assert a condition on constants once."""
    seen: list[tuple[str, cst.CSTNode]] = []
    for statement in function.flow.before:
        if not isinstance(statement, cst.Expr) or function.source.callee(statement.value) != "static_assert":
            continue
        text = squeezed(statement)
        if text not in function.old.text and any(
            text == other and function.flow.dominates(first, statement) for other, first in seen
        ):
            edits.remove.add(statement)
        else:
            seen.append((text, statement))
    return bool(edits.remove)


# Numbers and ranges beside pointers.


def share_counters(function: Function, edits: Edits) -> bool:
    """Let variables that always have one value be one variable; True where two were."""
    chains: dict[str, list[Definition]] = {}
    for definition in _defined(function):
        value = definition.value or definition.statement
        if function.is_new(definition.name) and function.source.callee(value) is None:
            chains.setdefault(definition.name, []).append(definition)
    for name in list(chains):
        every = sum(each.name == name for each in function.flow.definitions)
        if every != len(chains[name]) or any(map(_is_descriptor, chains[name])):
            del chains[name]
    names = list(chains)
    for number, first in enumerate(names):
        alike = [other for other in names[number + 1 :] if _run_alike(function, chains[first], chains[other])]
        if alike:
            _merge(function, chains, [first, *alike], edits)
            return True
    return False


def _is_descriptor(definition: Definition) -> bool:
    return definition.value is not None and any(
        isinstance(each, cst.Attribute) and each.attr.value in _MADE for each in walk(definition.value)
    )


def _run_alike(function: Function, one: Sequence[Definition], other: Sequence[Definition]) -> bool:
    """Whether two variables get the same values, each side by side with the other."""
    return len(one) == len(other) and all(
        _side_by_side(function, first, second) for first, second in zip(one, other, strict=True)
    )


def _side_by_side(function: Function, first: Definition, second: Definition) -> bool:
    """Whether two assignments of one value stand in one suite, with nothing between them that reads either variable."""
    flow = function.flow
    (suite, start), (other, end) = flow.blocks[first.statement][-1], flow.blocks[second.statement][-1]
    if suite is not other or not start < end or _kind(first) != _kind(second):
        return False
    value = first.augmented.value if first.augmented is not None else first.value
    if value is None or not function.is_same(value, first.statement, second.statement):
        return False
    between = [at for at, blocks in flow.blocks.items() if any(b is suite and start < p < end for b, p in blocks)]
    read = {name for at in between for part in _read(at) for name in names_in(part)}
    return second.name not in read


def _kind(definition: Definition) -> tuple[str, str]:
    """What an assignment does with a variable, as text without the variable."""
    if definition.augmented is not None:
        return type(definition.augmented.operator).__name__, code_of(definition.augmented.value)
    return "", code_of(definition.value) if definition.value is not None else ""


def _merge(function: Function, chains: dict[str, list[Definition]], names: Sequence[str], edits: Edits) -> None:
    kept = _common_name(function, chains[names[0]]) or names[0]
    for name in names:
        for _, node in function.reads(name):
            edits.replace[node] = named(kept)
        for definition in chains[name]:
            if name != names[0]:
                edits.remove.add(definition.statement)
            elif definition.target is not None:
                edits.replace[definition.target] = named(kept)


def _common_name(function: Function, chain: Sequence[Definition]) -> str:
    """`off_k` for what is moved by `BK` or `BLOCK_SIZE_K`; empty where the step has no such name, or that is taken."""
    steps = {code_of(each.augmented.value) for each in chain if each.augmented is not None}
    match = _STEP.match(steps.pop()) if len(steps) == 1 else None
    name = f"off_{match[1].lower()}" if match and chain[0].name.startswith("off_") else ""
    return name if name not in function.old.taken else ""


def hoist_common(function: Function, edits: Edits) -> bool:
    """Write what both sides of a branch begin with once, in front of it."""
    hoisted = False
    for statement in function.flow.before:
        if not isinstance(statement, cst.If) or not isinstance(statement.orelse, cst.Else):
            continue
        if function.is_elif(statement):
            continue  # nothing can stand in front of it
        sides = [_assignments(function, suite) for suite in (statement.body, statement.orelse.body)]
        for text, first in sides[0].items():
            second = sides[1].get(text)
            if second is None or first in edits.remove:
                continue
            assert isinstance(first, cst.Assign)
            name = code_of(first.targets[0].target)
            if function.is_same(first.value, statement, first) and function.is_same(first.value, statement, second):
                if name in names_in(statement.test) or not _only_there(function, name, (first, second)):
                    continue
                if any(_is_read_before(function, name, each) for each in (first, second)):
                    continue
                edits.insert(statement, [text])
                edits.remove |= {first, second}
                hoisted = True
    return hoisted


def _assignments(function: Function, suite: cst.BaseSuite) -> dict[str, cst.CSTNode]:
    """The assignments of numbers and ranges that the migration wrote, right in a suite, by their text."""
    found: dict[str, cst.CSTNode] = {}
    for statement, blocks in function.flow.blocks.items():
        if blocks[-1][0] is suite and isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            target = statement.targets[0].target
            new = isinstance(target, cst.Name) and function.is_new(target.value)
            if new and function.source.callee(statement.value) not in _MADE:
                found[code_of(statement)] = statement
    return found


def _is_read_before(function: Function, name: str, statement: cst.CSTNode) -> bool:
    """Whether a suite reads a variable before the statement that gives it a value."""
    suite, position = function.flow.blocks[statement][-1]
    before = [at for at, blocks in function.flow.blocks.items() if any(b is suite and p < position for b, p in blocks)]
    return any(name in names_in(part) for at in before for part in _read(at))


def _only_there(function: Function, name: str, statements: Sequence[cst.CSTNode]) -> bool:
    """Whether a variable, inside the branch, is given nothing but these values."""
    branch = function.flow.parents[statements[0]][-1]
    inside = [each for each in function.flow.definitions if each.name == name]
    return all(each.statement in statements or branch not in function.flow.parents[each.statement] for each in inside)
