"""Which assignments reach which statement of one function.

Level: source text. Python's structured control flow, walked once per statement (loops to a fixpoint). An assignment
that reaches a statement around the end of a loop is marked as carried: what it read may have changed meanwhile, though
the same assignments reach both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mltriton.tools.migrate.read.syntax import cst, elements, names_in, walk

# An assignment (its number) and whether it comes around a loop.
Reach = tuple[int, bool]
Env = Mapping[str, frozenset[Reach]]
Block = Sequence[cst.CSTNode]


@dataclass(frozen=True, eq=False)
class Definition:
    """A name gets a value at `statement`; `value` is None where no expression alone says what it is."""

    index: int
    name: str
    statement: cst.CSTNode
    value: cst.BaseExpression | None
    target: cst.Name | None
    augmented: cst.AugAssign | None = None


@dataclass
class _Loop:
    breaks: list[Env] = field(default_factory=list[Env])
    continues: list[Env] = field(default_factory=list[Env])


def join(envs: Iterable[Env | None]) -> Env | None:
    """What reaches a place where several paths meet; None where no path comes."""
    found: dict[str, frozenset[Reach]] | None = None
    for env in envs:
        if env is None:
            continue
        if found is None:
            found = dict(env)
            continue
        for name, reach in env.items():
            found[name] = found.get(name, frozenset()) | reach
    return found


class Flow:
    """The definitions of a function and what reaches each of its statements."""

    def __init__(self, function: cst.FunctionDef) -> None:
        self.function = function
        self.definitions: list[Definition] = []
        self.before: dict[cst.CSTNode, Env] = {}
        self.parents: dict[cst.CSTNode, tuple[cst.CSTNode, ...]] = {}  # enclosing compound statements, outermost first
        self.blocks: dict[
            cst.CSTNode, tuple[tuple[cst.CSTNode, int], ...]
        ] = {}  # (suite, position in it), outermost first
        self._known: dict[tuple[cst.CSTNode, str], int] = {}
        self._loops: list[_Loop] = []
        self._stack: list[cst.CSTNode] = []
        self._path: list[tuple[cst.CSTNode, int]] = []
        env: dict[str, frozenset[Reach]] = {}
        for parameter in parameters_of(function):
            self._define(env, parameter.name.value, parameter, None, parameter.name)
        self._suite(function.body, env)

    def reaching(self, name: str, at: cst.CSTNode) -> list[Definition]:
        """The definitions of a name that reach a statement."""
        reach = self.before[at].get(name, frozenset())
        return [self.definitions[index] for index in sorted({index for index, _ in reach})]

    def in_loop(self, statement: cst.CSTNode) -> bool:
        """Whether a statement may run more than once."""
        return any(isinstance(parent, cst.For | cst.While) for parent in self.parents[statement])

    def dominates(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether `first` ran before `second` since the suite that contains `first` was entered."""
        suite, position = self.blocks[first][-1]
        return any(other is suite and position < at for other, at in self.blocks[second])

    # Statements.

    def _suite(self, body: cst.BaseSuite | cst.CSTNode, env: Env) -> Env | None:
        statements: Block = body.body if isinstance(body, cst.IndentedBlock | cst.SimpleStatementSuite) else ()
        reached: Env | None = env
        position = 0
        for statement in statements:
            small: Block = statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)
            for part in small:
                if reached is None:
                    reached = {}  # unreachable: analysed as if nothing were known
                self._path.append((body, position))
                reached = self._statement(part, reached)
                self._path.pop()
                position += 1
        return reached

    def _statement(self, node: cst.CSTNode, env: Env) -> Env | None:
        self.before[node] = env
        self.parents[node] = tuple(self._stack)
        self.blocks[node] = tuple(self._path)
        if isinstance(node, cst.If):
            return self._if(node, env)
        if isinstance(node, cst.For | cst.While):
            return self._loop(node, env)
        if isinstance(node, cst.Return | cst.Raise):
            return None
        if isinstance(node, cst.Break | cst.Continue):
            if self._loops:
                ends = self._loops[-1].breaks if isinstance(node, cst.Break) else self._loops[-1].continues
                ends.append(env)
            return None
        if isinstance(node, cst.With):
            self._stack.append(node)
            after = self._suite(node.body, self._walrus(node.items, env))
            self._stack.pop()
            return after
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            changed = dict(env)
            self._define(changed, node.name.value, node, None, None)
            return changed
        return self._simple(node, env)

    def _if(self, node: cst.If, env: Env) -> Env | None:
        self._stack.append(node)
        env = self._walrus([node.test], env)
        then = self._suite(node.body, env)
        other: Env | None = env
        if isinstance(node.orelse, cst.If):
            self._path.append((node, 1))
            other = self._statement(node.orelse, env)
            self._path.pop()
        elif node.orelse is not None:
            other = self._suite(node.orelse.body, env)
        self._stack.pop()
        return join([then, other])

    def _loop(self, node: cst.For | cst.While, env: Env) -> Env | None:
        self._stack.append(node)
        first = len(self.definitions)
        back: Env | None = None
        while True:
            entry = join([env, back]) or {}
            # What a test or a target reads is as at the start of every iteration.
            self.before[node] = entry
            inside = dict(self._walrus([node.test] if isinstance(node, cst.While) else [node.iter], entry))
            if isinstance(node, cst.For):
                for name in _targets(node.target):
                    self._define(inside, name.value, node, None, name)
            self._loops.append(_Loop())
            end = self._suite(node.body, inside)
            loop = self._loops.pop()
            own = {index for (where, _), index in self._known.items() if index >= first or node in self._above(where)}
            carried = _carry(join([end, *loop.continues]), own)
            if carried == back:
                break
            back = carried
        after = entry
        if node.orelse is not None:
            after = self._suite(node.orelse.body, entry)
        self._stack.pop()
        return join([after, *loop.breaks])

    def _above(self, node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
        return (*self.parents.get(node, ()), node)

    def _simple(self, node: cst.CSTNode, env: Env) -> Env:
        found = dict(self._walrus([node], env))
        if isinstance(node, cst.Assign):
            for target in node.targets:
                self._assign(found, target.target, node.value, node)
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            self._assign(found, node.target, node.value, node)
        elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            self._define(found, node.target.value, node, None, node.target, node)
        return found

    def _assign(
        self, env: dict[str, frozenset[Reach]], target: cst.CSTNode, value: cst.BaseExpression | None, at: cst.CSTNode
    ) -> None:
        if isinstance(target, cst.Name):
            self._define(env, target.value, at, value, target)
        elif isinstance(target, cst.Tuple | cst.List):
            values = elements(value) if value is not None else None
            if values is None or len(values) != len(target.elements):
                values = [None] * len(target.elements)
            for element, part in zip(target.elements, values, strict=True):
                self._assign(env, element.value, part, at)

    def _define(
        self,
        env: dict[str, frozenset[Reach]],
        name: str,
        at: cst.CSTNode,
        value: cst.BaseExpression | None,
        target: cst.Name | None,
        augmented: cst.AugAssign | None = None,
    ) -> None:
        index = self._known.setdefault((at, name), len(self.definitions))
        if index == len(self.definitions):
            self.definitions.append(Definition(index, name, at, value, target, augmented))
        env[name] = frozenset({(index, False)})

    def _walrus(self, nodes: Sequence[cst.CSTNode], env: Env) -> Env:
        found: dict[str, frozenset[Reach]] | None = None
        for part in nodes:
            for node in walk(part):
                if isinstance(node, cst.NamedExpr) and isinstance(node.target, cst.Name):
                    found = dict(env) if found is None else found
                    self._define(found, node.target.value, node, None, None)
        return found if found is not None else env


def parameters_of(function: cst.FunctionDef) -> list[cst.Param]:
    """The parameters of a function, in order; without stars."""
    parameters = function.params
    return [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]


def is_assigned(function: cst.FunctionDef, name: str) -> bool:
    """Whether a function gives one of its parameters another value."""
    for node in walk(function.body):
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else []
        if isinstance(node, cst.AugAssign | cst.AnnAssign | cst.For | cst.NamedExpr):
            targets = [node.target]
        if any(name in names_in(target) for target in targets):
            return True
    return False


def _targets(target: cst.CSTNode) -> list[cst.Name]:
    return [node for node in walk(target) if isinstance(node, cst.Name)]


def _carry(env: Env | None, own: set[int]) -> Env | None:
    if env is None:
        return None
    return {
        name: frozenset((index, carried or index in own) for index, carried in reach) for name, reach in env.items()
    }
