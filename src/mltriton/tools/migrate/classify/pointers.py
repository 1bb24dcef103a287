"""The block pointers of one function: where they are made, where they go, and what uses them.

Level: source text. Block pointers that meet in a variable (branches, loops, `tl.advance` under a new name) form one
`Group` and are migrated alike. What is done with a pointer and is not understood is a problem of its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mltriton.tools.migrate.classify.group import Access, Advance, Attribute, Construct, Group
from mltriton.tools.migrate.read.flow import Env, Flow
from mltriton.tools.migrate.read.parse import MAKERS, Source
from mltriton.tools.migrate.read.syntax import children, code_of, constant_int, cst, dotted, elements, walk

ATTRIBUTES = ("dtype.element_ty", "type.element_ty.element_ty", "type.element_ty")
_NUMBERS = (cst.BinaryOperation, cst.UnaryOperation, cst.Integer)
INGREDIENTS = ("shape", "strides", "offsets", "block_shape", "order")


class Pointers:
    """All groups of a function, by walking it once."""

    def __init__(self, source: Source, function: cst.FunctionDef) -> None:
        self.source = source
        self.function = function
        self.flow = Flow(function)
        self._known: set[int] = set()
        self._parent: dict[object, object] = {}
        self._members: dict[object, Group] = {}
        self._construct: dict[cst.CSTNode, Construct | None] = {}
        self._unread: set[cst.CSTNode] = set()  # accesses whose boundary check is not written in numbers
        self._find_definitions()
        for node in self.flow.before:
            self._visit_statement(node)
        self.groups = self._collect()

    # Which definitions are block pointers.

    def is_pointer(self, node: cst.CSTNode, env: Env) -> bool:
        """Whether an expression may be a block pointer."""
        callee = self.source.callee(node)
        if callee in MAKERS:
            return True
        if isinstance(node, cst.IfExp):
            return self.is_pointer(node.body, env) or self.is_pointer(node.orelse, env)
        if isinstance(node, cst.Name):
            return any(index in self._known for index, _ in env.get(node.value, ()))
        return False

    def _find_definitions(self) -> None:
        while True:
            before = len(self._known)
            for definition in self.flow.definitions:
                at = definition.statement
                if definition.value is None or at not in self.flow.before:
                    continue
                if self.is_pointer(definition.value, self.flow.before[at]):
                    self._known.add(definition.index)
            if len(self._known) == before:
                return

    # Union of values that meet.

    def _find(self, key: object) -> object:
        while self._parent.setdefault(key, key) is not key:
            key = self._parent[key]
        return key

    def _group(self, key: object) -> Group:
        root = self._find(key)
        return self._members.setdefault(root, Group())

    def _unite(self, keys: list[object]) -> Group:
        first = self._find(keys[0])
        for key in keys[1:]:
            other = self._find(key)
            if other is not first:
                self._parent[other] = first
                absorbed = self._members.pop(other, None)
                if absorbed is not None:
                    _merge(self._members.setdefault(first, Group()), absorbed)
        return self._members.setdefault(first, Group())

    def _keys(self, node: cst.BaseExpression, env: Env) -> list[object]:
        """What an expression's value may be: definitions, or calls that stand inside the expression."""
        if isinstance(node, cst.Name):
            return [index for index, _ in sorted(env.get(node.value, ())) if index in self._known]
        if isinstance(node, cst.IfExp):
            parts = [part for part in (node.body, node.orelse) if self.is_pointer(part, env)]
            return [key for part in parts for key in self._keys(part, env)]
        return [node]

    # Walking.

    def _visit_statement(self, node: cst.CSTNode) -> None:
        env = self.flow.before[node]
        if isinstance(node, cst.If | cst.While):
            self._visit(node.test, env, node)
        elif isinstance(node, cst.For):
            self._visit(node.iter, env, node)
        elif isinstance(node, cst.With):
            for item in node.items:
                self._visit(item, env, node)
        elif isinstance(node, cst.Assign | cst.AnnAssign):
            self._visit_assignment(node, env)
        elif not isinstance(node, cst.FunctionDef | cst.ClassDef):
            for child in children(node):
                self._visit(child, env, node)

    def _visit_assignment(self, node: cst.Assign | cst.AnnAssign, env: Env) -> None:
        own = [each for each in self.flow.definitions if each.statement is node and each.index in self._known]
        for definition in own:
            assert definition.value is not None
            group = self._unite([definition.index, *self._value(definition.value, env, node)])
            group.definitions.append(definition)
            several = isinstance(node, cst.Assign) and len(node.targets) > 1
            if several and self.source.callee(definition.value) != "make_block_ptr":
                group.problems.append((node, "a chained assignment gives the pointer several names at once"))
        handled = {definition.value for definition in own}
        targets = [target.target for target in node.targets] if isinstance(node, cst.Assign) else [node.target]
        for target in targets:
            if not isinstance(target, cst.Name | cst.Tuple | cst.List):
                self._visit(target, env, node)
        parts = elements(node.value) if node.value is not None else []
        for part in parts if parts is not None and own else [node.value] if node.value is not None else []:
            if part not in handled:
                self._visit(part, env, node)

    def _value(self, node: cst.BaseExpression, env: Env, at: cst.CSTNode) -> list[object]:
        """Record the calls that make up a block pointer's value; returns the keys to unite."""
        callee = self.source.callee(node)
        if callee == "make_block_ptr":
            assert isinstance(node, cst.Call)
            self._record_construct(node, env, at)
        elif callee == "advance":
            assert isinstance(node, cst.Call)
            return self._record_advance(node, env, at)
        elif isinstance(node, cst.IfExp):
            self._visit(node.test, env, at)
            keys = [key for part in (node.body, node.orelse) for key in self._value(part, env, at)]
            self._unite(keys).choices.append(node)
            return keys
        elif isinstance(node, cst.Name):
            self._check_mixture(node, env)
        elif code_of(node) != "None":
            self._group(node).problems.append((node, "block pointers are mixed with something that is not one"))
            self._visit(node, env, at)
        return self._keys(node, env)

    def _check_mixture(self, node: cst.Name, env: Env) -> None:
        for index, _ in env.get(node.value, ()):
            definition = self.flow.definitions[index]
            if index not in self._known and not (definition.value is not None and code_of(definition.value) == "None"):
                text = f"{node.value} is a block pointer here only on some paths, and something else on others"
                self._unite(self._keys(node, env)).problems.append((node, text))

    def _record_construct(self, call: cst.Call, env: Env, at: cst.CSTNode) -> None:
        group = self._group(call)
        arguments = self.source.arguments(call)
        known = arguments or {}
        parts = {name: elements(known[name].value) for name in INGREDIENTS if name in known}
        if "order" in parts and parts["order"] is None and not isinstance(known["order"].value, cst.Integer):
            parts["order"] = self._order(known["order"].value, at)
        lengths = {len(part) for part in parts.values() if part}
        bare = [isinstance(known[name].value, _NUMBERS) for name, part in parts.items() if part is None]
        if lengths == {1} or (not lengths and any(bare)):
            # Triton takes a number for a sequence of one; a name may be either, where no number is written out.
            kinds = (*_NUMBERS, cst.Name, cst.Call) if any(bare) else _NUMBERS
            parts |= {name: [known[name].value] for name in parts if isinstance(known[name].value, kinds)}
        if arguments is None or "base" not in arguments or len(parts) < len(INGREDIENTS):
            group.problems.append((call, "the arguments of make_block_ptr are not all written out"))
            construct = Construct(call, at, call.func, (), (), (), (), ())
        elif any(part is None for part in parts.values()):
            name = next(name for name, part in parts.items() if part is None)
            group.problems.append((call, f"`{name}` is not written as a tuple here"))
            construct = Construct(call, at, arguments["base"].value, (), (), (), (), ())
        else:
            tuples = {name: tuple(part or ()) for name, part in parts.items()}
            construct = Construct(call, at, arguments["base"].value, **tuples)
            if len({len(part) for name, part in tuples.items() if name != "order" or part}) > 1:
                group.problems.append((call, "the arguments of make_block_ptr have different lengths"))
        group.constructs.append(construct)
        self._construct[call] = construct
        for arg in call.args:
            self._visit(arg.value, env, at)

    def _order(self, node: cst.BaseExpression, at: cst.CSTNode) -> list[cst.BaseExpression]:
        """The order that a name stands for; empty where it is chosen, as it says nothing then: it is a hint only."""
        reaching = self.flow.reaching(node.value, at) if isinstance(node, cst.Name) else []
        value = reaching[0].value if len(reaching) == 1 else None
        return (elements(value) if value is not None else None) or []

    def _record_advance(self, call: cst.Call, env: Env, at: cst.CSTNode) -> list[object]:
        arguments = self.source.arguments(call)
        if arguments is None or not {"base", "offsets"} <= set(arguments):
            self._group(call).problems.append((call, "the arguments of advance are not all written out"))
            return [call]
        pointer = arguments["base"].value
        offsets = arguments["offsets"].value
        deltas = elements(offsets)
        if deltas is None and isinstance(offsets, (*_NUMBERS, cst.Name)):
            deltas = [offsets]  # of one dimension
        self._visit(arguments["offsets"].value, env, at)
        if not self.is_pointer(pointer, env):
            group = self._group(call)
            group.problems.append((call, f"{code_of(pointer)} comes from elsewhere: its shape and strides are unknown"))
            group.advances.append(Advance(call, at, pointer, ()))
            return [call]
        group = self._unite([call, *self._value(pointer, env, at)])
        group.advances.append(Advance(call, at, pointer, tuple(deltas or ())))
        if deltas is None:
            group.problems.append((call, "the offsets of advance are not written as a tuple here"))
        return [call]

    def _visit(self, node: cst.CSTNode, env: Env, at: cst.CSTNode) -> None:
        """Find the uses of block pointers in an expression."""
        callee = self.source.callee(node)
        if callee in ("load", "store"):
            assert isinstance(node, cst.Call)
            self._visit_access(node, callee, env, at)
        elif isinstance(node, cst.Attribute):
            self._visit_attribute(node, env, at)
        elif isinstance(node, cst.Arg):
            self._visit(node.value, env, at)
        elif isinstance(node, cst.BaseExpression) and self.is_pointer(node, env):
            group = self._unite(self._value(node, env, at))
            group.problems.append((node, _problem(at, node, self.source)))
        else:
            for child in children(node):
                self._visit(child, env, at)

    def _visit_access(self, call: cst.Call, kind: str, env: Env, at: cst.CSTNode) -> None:
        arguments = self.source.arguments(call) or {}
        pointer = arguments["pointer"].value if "pointer" in arguments else None
        if pointer is None or not self.is_pointer(pointer, env):
            if "boundary_check" in arguments and pointer is not None:
                text = f"{code_of(pointer)} comes from elsewhere: its shape and strides are unknown"
                group = self._group(call)
                group.accesses.append(Access(call, at, kind, pointer, arguments, frozenset(), ""))
                group.problems.append((call, text))
            for arg in call.args:
                self._visit(arg.value, env, at)
            return
        group = self._unite(self._value(pointer, env, at))
        for name, arg in arguments.items():
            if name != "pointer":
                self._visit(arg.value, env, at)
        checked = _checked(arguments)
        padding = _text(arguments, "padding_option")
        if padding not in ("", "zero", "nan"):
            group.problems.append((call, "padding_option is not a plain text here"))
        access = Access(call, at, kind, pointer, arguments, checked or frozenset(), padding)
        group.accesses.append(access)
        if checked is None:
            self._unread.add(call)
        if access.has("mask") or access.has("other"):
            group.problems.append((call, "a block pointer takes no mask"))

    def _visit_attribute(self, node: cst.Attribute, env: Env, at: cst.CSTNode) -> None:
        chain: list[str] = []
        inner: cst.BaseExpression = node
        while isinstance(inner, cst.Attribute):
            chain.insert(0, inner.attr.value)
            inner = inner.value
        if not (isinstance(inner, cst.Name) and self.is_pointer(inner, env)):
            self._visit(node.value, env, at)
            return
        group = self._unite(self._keys(inner, env))
        path = ".".join(chain)
        if path in ATTRIBUTES:
            self._check_mixture(inner, env)
            group.attributes.append(Attribute(node, at, inner))
        else:
            group.problems.append((node, f"`.{path}` of a block pointer is not understood"))

    def _collect(self) -> list[Group]:
        found = [group for group in self._members.values() if group.sites]
        for group in found:
            group.accesses = [self._with_check(access, group) for access in group.accesses]
        return found

    def _with_check(self, access: Access, group: Group) -> Access:
        """An access whose check was not written in numbers: in one dimension it can only mean that one."""
        if access.call not in self._unread:
            return access
        node = access.arguments["boundary_check"].value
        values = (elements(node) or []) if isinstance(node, cst.Tuple | cst.List) else [node]
        flat = {construct.rank for construct in group.constructs} == {1}
        if flat and len(values) == 1 and isinstance(values[0], cst.Name) and self._is_number(values[0], access):
            return replace(access, checked=frozenset({0}))
        group.problems.append((access.call, "boundary_check is not written as a tuple of numbers here"))
        return access

    def _is_number(self, name: cst.Name, access: Access) -> bool:
        """Whether a name is a constexpr parameter, and so no tuple that somebody wrote elsewhere."""
        for definition in self.flow.reaching(name.value, access.statement):
            annotation = definition.statement.annotation if isinstance(definition.statement, cst.Param) else None
            if annotation is None or not code_of(annotation.annotation).endswith("constexpr"):
                return False
        return name is not access.arguments["boundary_check"].value

    def construct_of(self, call: cst.CSTNode) -> Construct | None:
        """The construct of a call of make_block_ptr."""
        return self._construct.get(call)


def _merge(into: Group, other: Group) -> None:
    into.constructs += other.constructs
    into.advances += other.advances
    into.definitions += other.definitions
    into.accesses += other.accesses
    into.attributes += other.attributes
    into.choices += other.choices
    into.problems += other.problems


def _checked(arguments: Mapping[str, cst.Arg]) -> frozenset[int] | None:
    if "boundary_check" not in arguments or code_of(arguments["boundary_check"].value) == "None":
        return frozenset()
    node = arguments["boundary_check"].value
    values = elements(node) if isinstance(node, cst.Tuple | cst.List) else [node]
    numbers = [constant_int(value) for value in values or []]
    if values is None or None in numbers:
        return None
    return frozenset(number for number in numbers if number is not None)


def _text(arguments: Mapping[str, cst.Arg], name: str) -> str:
    if name not in arguments or code_of(arguments[name].value) == "None":
        return ""
    node = arguments[name].value
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else "?"


def _problem(at: cst.CSTNode, node: cst.BaseExpression, source: Source) -> str:
    """What a statement does with a pointer that is no load, store, advance or assignment."""
    if isinstance(at, cst.Return):
        return "a block pointer is returned: return its offsets instead, and make the descriptor in the caller"
    for call in (each for each in walk(at) if isinstance(each, cst.Call)):
        if any(arg.value is node for arg in call.args):
            return f"a block pointer is passed to {code_of(call.func)}, {_where(call, source)}"
    return f"`{code_of(node)}` is used in a way that is not understood"


def _where(call: cst.Call, source: Source) -> str:
    """Why the parameters of a called function could not be changed."""
    name = dotted(call.func) or ""
    found = source.imported.get(name) or source.imported.get(name.rpartition(".")[0])
    if any(isinstance(each, cst.FunctionDef) and each.name.value == name for each in walk(source.module)):
        return "whose calls do not all pass a block pointer whose shape, strides and offsets are known where it is made"
    if found is None:
        return "which is not among the functions given"
    return f"which comes from {found}: give the file of that module as well"
