"""How small the constants of a kernel can be: in every launch and call that the given files show.

Level: source text, that of callers included, read with Python's own parser. A bound comes from autotune configurations
and heuristics, the arguments of launches and of calls from other kernels, assertions in the host's and the kernel's
code, and arithmetic over these (`min`, `max`, `next_power_of_2`, conditional expressions). Guarantees: a number is a
proof for the launches shown; None where nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from mltriton.frontend.syntax import parsed

_DEPTH = 12


@dataclass(frozen=True, eq=False)
class _Scope:
    """Where an expression stands: a function of a file, or the file itself; `inner`: the kernel a lambda speaks of."""

    tree: ast.Module
    function: ast.FunctionDef | None = None
    kernel: ast.FunctionDef | None = None


@dataclass
class Sizes:
    """Lower bounds over some files (their texts by path)."""

    texts: Mapping[str, str]
    _trees: dict[str, ast.Module] | None = None
    _asked: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    _known: dict[tuple[int, str], int | None] = field(default_factory=dict[tuple[int, str], "int | None"])

    def least(self, path: str, function: str, size: str) -> int | None:
        """The least value of an expression over the constants of a kernel."""
        tree = self.trees.get(path)
        kernels = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)) if tree else ()
        kernel = next((node for node in kernels if node.name == function), None)
        if tree is None or kernel is None:
            return None
        expression = cast(ast.Expr, parsed(f"({size})").body[0])
        return self._low(expression.value, _Scope(tree, kernel), 0)

    def is_launched(self, function: str, below: tuple[str, ...] = ()) -> bool:
        """Whether the files show a launch of a function, or of one that calls it."""
        for path, tree in self.trees.items():
            for caller, call in _calls(function, tree) if function in self.texts[path] else ():
                if isinstance(call.func, ast.Subscript):
                    return True
                if caller.name not in (function, *below) and self.is_launched(caller.name, (function, *below)):
                    return True
        return False

    @property
    def trees(self) -> Mapping[str, ast.Module]:
        """The files, parsed when they are first asked for; one that does not parse says nothing."""
        if self._trees is None:
            self._trees = {}
            for path, text in self.texts.items():
                try:
                    self._trees[path] = parsed(text)
                except (SyntaxError, ValueError):
                    continue
        return self._trees

    # Expressions.

    def _low(self, node: ast.expr, scope: _Scope, depth: int) -> int | None:
        """The least value of an expression."""
        if depth > _DEPTH:
            return None
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.Name(id=name):
                return self._name(name, scope, depth + 1)
            case ast.IfExp(body=body, orelse=orelse):
                return _least(self._low(each, scope, depth + 1) for each in (body, orelse))
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(op, self._low(left, scope, depth + 1), self._low(right, scope, depth + 1))
            case ast.Subscript(value=ast.Name(id="args"), slice=ast.Constant(value=str() as name)) if scope.kernel:
                return self._parameter(name, scope.kernel, scope.tree, depth + 1)
            case ast.Subscript(value=ast.Name() as value):
                return _least(self._low(each, scope, depth + 1) for each in self._elements(value, scope))
            case ast.Call():
                return self._call(node, scope, depth)
            case _:
                return None

    def _call(self, call: ast.Call, scope: _Scope, depth: int) -> int | None:
        name = ast.unparse(call.func).rpartition(".")[2]
        lows = [self._low(each, scope, depth + 1) for each in call.args]
        if name in ("min", "minimum"):
            return _least(lows)
        if name in ("max", "maximum"):
            return max((low for low in lows if low is not None), default=None)
        if name == "next_power_of_2":
            return 1 << (max(lows[0] or 1, 1) - 1).bit_length() if lows else None
        if name in ("int", "constexpr") and lows:
            return lows[0]
        function = next((each for each in _functions(scope.tree) if each.name == name), None)
        if function is None:
            return None
        returned = [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value]
        return _least(self._low(each, _Scope(scope.tree, function), depth + 1) for each in returned)

    def _elements(self, name: ast.Name, scope: _Scope) -> Sequence[ast.expr]:
        """What a list, tuple or dictionary that a name stands for holds."""
        values = [*_assigned(name.id, scope.function or scope.tree), *_assigned(name.id, scope.tree)]
        return _members(values[0]) if len(values) == 1 and values[0] is not None else ()

    def _name(self, name: str, scope: _Scope, depth: int) -> int | None:
        """The least value of a variable, a parameter or a constant of the file."""
        function = scope.function
        found: int | None
        if function is not None and name in _parameters(function) and not list(_assigned(name, function)):
            found = self._parameter(name, function, scope.tree, depth)
        else:
            local = list(_assigned(name, function)) if function is not None else []
            values = local or list(_assigned(name, scope.tree))
            if function is not None and name in _parameters(function):
                values = [*values, None]
            found = _least(None if each is None else self._low(each, scope, depth) for each in values)
        asserted = _asserted(name, function) if function is not None else None
        return max((low for low in (found, asserted) if low is not None), default=None)

    # Parameters.

    def _parameter(self, name: str, function: ast.FunctionDef, tree: ast.Module, depth: int) -> int | None:
        key = (id(function), name)
        if key in self._known:
            return self._known[key]
        if key in self._asked:
            return None
        self._asked.add(key)
        tuned = self._tuned(name, function, tree, depth)
        found = self._passed(name, function, depth) if tuned is None else tuned
        self._asked.discard(key)
        self._known[key] = found
        return found

    def _tuned(self, name: str, function: ast.FunctionDef, tree: ast.Module, depth: int) -> int | None:
        """The least value that autotune configurations and heuristics give."""
        for decorator in function.decorator_list:
            kind = ast.unparse(decorator).partition("(")[0].rpartition(".")[2]
            if not isinstance(decorator, ast.Call) or kind not in ("autotune", "heuristics"):
                continue
            values = list(_given(name, decorator, tree))
            if values:
                scope = _Scope(tree, None, function)
                return _least(self._low(each, scope, depth + 1) for each in values)
        return None

    def _passed(self, name: str, function: ast.FunctionDef, depth: int) -> int | None:
        """The least value that launches and calls pass; None without any."""
        lows: list[int | None] = []
        for path, tree in self.trees.items():
            own = [each for each in _functions(tree) if each.name == function.name]
            if function.name not in self.texts[path] or (own and function not in own):
                continue
            calls = [(caller, call) for caller, call in _calls(function.name, tree) if caller is not function]
            if len(calls) < _mentions(function.name, tree):
                return None  # somebody keeps it or passes it on, and may launch it with anything
            for caller, call in calls:
                value = _argument(name, function, call)
                lows.append(None if value is None else self._low(value, _Scope(tree, caller), depth + 1))
        return _least(lows)


def _least(values: Iterator[int | None] | Sequence[int | None]) -> int | None:
    """The least of several bounds; None where one is not known, or there is none."""
    found = list(values)
    known = [value for value in found if value is not None]
    return min(known) if known and len(known) == len(found) else None


_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Mult: lambda left, right: left * right,
    ast.LShift: lambda left, right: left << min(right, 30),
    ast.Pow: lambda left, right: left ** min(right, 30),
}


def _combined(op: ast.operator, left: int | None, right: int | None) -> int | None:
    """The least value of an operation that grows with numbers that are not negative."""
    operation = _OPERATIONS.get(type(op))
    if operation is None or left is None or right is None or left < 0 or right < 0:
        return None
    return operation(left, right)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _assigned(name: str, where: ast.FunctionDef | ast.Module) -> Iterator[ast.expr | None]:
    """The values that a name is given; None for one that no expression says. Of a file, outside its functions."""
    inside = where.body if isinstance(where, ast.FunctionDef) else []
    for node in [part for each in inside for part in ast.walk(each)] or _outside(where):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.comprehension):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield from _values(node)
            elif isinstance(target, ast.Tuple | ast.List):
                yield from _unpacked(name, target, getattr(node, "value", None))


def _outside(tree: ast.AST) -> list[ast.AST]:
    """The statements of a file that are in no function."""
    found: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            found.append(node)
            waiting += ast.iter_child_nodes(node)
    return found


def _values(node: ast.AST) -> Sequence[ast.expr | None]:
    if isinstance(node, ast.For | ast.comprehension):
        return _members(node.iter) or [None]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        return [node.value]
    return [None]


def _unpacked(name: str, target: ast.Tuple | ast.List, value: ast.expr | None) -> Iterator[ast.expr | None]:
    names = [ast.unparse(each).lstrip("*") for each in target.elts]
    if name in names:
        whole = isinstance(value, ast.Tuple) and len(value.elts) == len(names)
        starred = isinstance(value, ast.Tuple) and any(isinstance(each, ast.Starred) for each in value.elts)
        yield value.elts[names.index(name)] if isinstance(value, ast.Tuple) and whole and not starred else None


def _members(node: ast.expr) -> Sequence[ast.expr]:
    """The elements of a display; of one that is chosen, those of both."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.Dict(values=values):
            return values
        case ast.IfExp(body=body, orelse=orelse):
            sides = _members(body), _members(orelse)
            return [*sides[0], *sides[1]] if all(sides) else ()
        case _:
            return ()


def _given(name: str, decorator: ast.Call, tree: ast.Module) -> Iterator[ast.expr]:
    """What configurations (`{"BK": BK} for BK in (32, 64)`) and heuristics (`{"BK": lambda args: ...}`) give."""
    nodes: list[ast.AST] = [decorator]
    for each in ast.walk(decorator):
        if isinstance(each, ast.Name):  # configurations that are made elsewhere in the file
            nodes += [value for value in _assigned(each.id, tree) if value is not None]
            nodes += [function for function in _functions(tree) if function.name == each.id]
    for each in (part for node in nodes for part in ast.walk(node)):
        if not isinstance(each, ast.Dict):
            continue
        for key, value in zip(each.keys, each.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                yield from _chosen(value, nodes, tree)


def _chosen(value: ast.expr, nodes: Sequence[ast.AST], tree: ast.Module) -> Iterator[ast.expr]:
    """What the value of a configuration stands for: the numbers that a comprehension or a loop goes through."""
    if isinstance(value, ast.Lambda):
        value = value.body
    if not isinstance(value, ast.Name):
        yield value
        return
    found = False
    for each in (part for node in nodes for part in ast.walk(node)):
        target = each.target if isinstance(each, ast.comprehension | ast.For) else None
        if isinstance(each, ast.comprehension | ast.For) and isinstance(target, ast.Name) and target.id == value.id:
            members = _members(each.iter)
            if isinstance(each.iter, ast.Name):
                members = [m for v in _assigned(each.iter.id, tree) if v is not None for m in _members(v)]
            found = found or bool(members)
            yield from members
    if not found:
        yield value


def _calls(name: str, tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """The launches and calls of a function, each with the function around it."""
    for caller in _functions(tree):
        for node in ast.walk(caller):
            if isinstance(node, ast.Call) and _callee(node.func) == name:
                yield caller, node


def _mentions(name: str, tree: ast.Module) -> int:
    """How often functions of a file read a name."""
    nodes = (node for function in _functions(tree) if function.name != name for node in ast.walk(function))
    return sum(name == (node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")) for node in nodes)


def _callee(node: ast.expr) -> str:
    """The name in `f`, `m.f`, `f[grid]` and `wrapped(f)[grid]`."""
    if isinstance(node, ast.Subscript):
        node = node.value
        if isinstance(node, ast.Call) and len(node.args) == 1:
            node = node.args[0]
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _argument(name: str, function: ast.FunctionDef, call: ast.Call) -> ast.expr | None:
    """What a call passes for a parameter, or its default; None where that is not written out."""
    starred = next((index for index, each in enumerate(call.args) if isinstance(each, ast.Starred)), None)
    given = dict(zip(_parameters(function), call.args[:starred], strict=False))
    given |= {each.arg or "": each.value for each in call.keywords}
    if name in given:
        return given[name]
    if "" in given or (starred is not None and name not in [each.arg for each in function.args.kwonlyargs]):
        return None
    defaults = [*function.args.defaults]
    positional = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    known: dict[str, ast.expr | None] = dict(zip(reversed(positional), reversed(defaults), strict=False))
    known |= dict(zip([each.arg for each in function.args.kwonlyargs], function.args.kw_defaults, strict=True))
    return known.get(name)


def _asserted(name: str, function: ast.FunctionDef) -> int | None:
    """What assertions say that a name is at least: `assert K >= 16`, `assert K in (16, 32)`, `static_assert(...)`."""
    found: list[int] = []
    for node in ast.walk(function):
        test = node.test if isinstance(node, ast.Assert) else None
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("static_assert") and node.args:
            test = node.args[0]
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        found += [low for part in parts if part is not None and (low := _bound(name, part)) is not None]
    return max(found, default=None)


def _bound(name: str, test: ast.expr) -> int | None:
    """What a condition says that a name is at least."""
    match test:
        case ast.Compare(left=ast.Name(id=left), ops=[op], comparators=[other]) if left == name:
            value = other.value if isinstance(other, ast.Constant) and isinstance(other.value, int) else None
            if isinstance(op, ast.In):
                numbers = [each.value for each in _members(other) if isinstance(each, ast.Constant)]
                return min((n for n in numbers if isinstance(n, int)), default=None) if numbers else None
            if value is None:
                return None
            return value if isinstance(op, ast.GtE | ast.Eq) else value + 1 if isinstance(op, ast.Gt) else None
        case ast.Compare(left=ast.Constant(value=int() as value), ops=[op, *_], comparators=[ast.Name(id=right), *_]):
            if right != name or not isinstance(op, ast.LtE | ast.Lt):
                return None
            return value + isinstance(op, ast.Lt)
        case _:
            return None
