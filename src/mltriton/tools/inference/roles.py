"""What each parameter of a kernel is, of which only the text is known.

Level: source text. It follows from annotations and uses: bases of loads and stores are arrays, what sizes a block is a
power of two, what is tested alone is a flag, what is compared with a text is that text or None, other integers are
sizes. Arrays of integers may have a meaning: where sequences start and end, and which chunk of which sequence.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, cast

from mltriton.frontend.function import LanguageFunction

FLOATS = ("scale", "eps", "alpha", "beta", "gamma", "rate", "prob", "theta", "lower_bound", "temperature", "norm_")
_LEADING_FLAGS = ("IS_", "USE_", "HAS_", "STORE_", "OUTPUT_", "SAVE_", "DO_", "REVERSE", "CAUSAL", "NORM")


# What arrays hold: numbers (floats), positions where sequences start and end, how many chunks lie before each sequence,
# a sequence and a chunk of it in turns, or small integers.
HOLDS = ("numbers", "bounds", "counts", "pairs", "integers")


@dataclass
class Roles:
    """What each parameter of a kernel is."""

    pointers: dict[str, str] = field(default_factory=dict[str, str])  # what they hold: a key of `HOLDS`
    blocks: set[str] = field(default_factory=set[str])
    flags: set[str] = field(default_factory=set[str])
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    constants: set[str] = field(default_factory=set[str])
    numbers: list[str] = field(default_factory=list[str])
    floats: set[str] = field(default_factory=set[str])
    strides: set[str] = field(default_factory=set[str])
    units: set[str] = field(default_factory=set[str])  # strides along the contiguous dimension
    stored: set[str] = field(default_factory=set[str])  # arrays that are written
    wide: set[str] = field(default_factory=set[str])  # arrays of which functions are taken that know no fp16
    extents: set[str] = field(default_factory=set[str])  # sizes of the tensors that block pointers point into
    axes: dict[str, int] = field(default_factory=dict[str, int])  # constants that number dimensions, fastest first


Functions = Mapping[str, ast.FunctionDef]


def roles_of(function: ast.FunctionDef, functions: Functions | None = None) -> Roles:
    """Classify the parameters of a kernel by its text and that of the functions it calls."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = [each.arg for each in arguments]
    constant = {each.arg for each in arguments if each.annotation and "constexpr" in ast.unparse(each.annotation)}
    roles = Roles(constants=constant)
    functions = functions or {}
    pointed = _pointed(function, functions)
    neighbours, integers = _side_by_side(function), _integer_pointers(function, pointed)
    for name in names:
        if name in pointed and name not in constant:
            roles.pointers[name] = _holds(name, neighbours) if name in integers else "numbers"
        elif name not in constant:
            if any(part in name.lower() for part in FLOATS):
                roles.floats.add(name)
            else:
                roles.numbers.append(name)
        if "stride" in name.lower() or name.startswith("str_"):
            roles.strides.add(name)
    roles.stored = _stored(function, functions) & set(roles.pointers)
    roles.wide = _wide(function) & set(roles.pointers)
    for node in ast.walk(function):
        _look(node, roles)
        passed = _passed(node, functions)
        called = roles_of(functions[_called(node)], {**functions, function.name: _NOTHING}) if passed else Roles()
        for outer, inner in passed:
            for own, theirs in ((roles.blocks, called.blocks), (roles.flags, called.flags)):
                own |= {outer} & roles.constants if inner in theirs else set()
            for own, theirs in ((roles.strides, called.strides), (roles.extents, called.extents)):
                own |= {outer} & set(names) if inner in theirs else set()
            if inner in called.texts and outer in roles.constants:
                roles.texts.setdefault(outer, []).extend(called.texts[inner])
    roles.units |= _units(function, functions) & set(names)
    roles.flags -= roles.blocks
    for name in constant:
        if name.startswith(_LEADING_FLAGS) and name not in roles.blocks and not is_dtype(name):
            roles.flags.add(name)
    return roles


def is_dtype(name: str) -> bool:
    """Whether a constant is a dtype, by its name."""
    return "dtype" in name.lower()


_NOTHING = cast(ast.FunctionDef, ast.parse("def nothing(): pass").body[0])


def functions_in(names: Mapping[str, Any]) -> dict[str, ast.FunctionDef]:
    """The functions of Triton's language in a file's names, those of modules as `module.function`."""
    found: dict[str, ast.FunctionDef] = {}
    for name, value in names.items():
        inner = vars(value) if isinstance(value, ModuleType) and not _is_language(value) else {}
        every = {name: value, **{f"{name}.{attribute}": each for attribute, each in inner.items()}}
        found |= {key: each.source.tree for key, each in every.items() if isinstance(each, LanguageFunction)}
    return found


def _is_language(module: ModuleType) -> bool:
    return module.__name__.partition(".")[0] == "mltriton" or module.__name__ in sys.stdlib_module_names


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return ""
    return ast.unparse(node.func)


def _passed(node: ast.AST, functions: Functions) -> list[tuple[str, str]]:
    """Names that a call of a known function passes, with the parameters that get them."""
    function = functions.get(_called(node))
    if function is None or not isinstance(node, ast.Call):
        return []
    names = [each.arg for each in [*function.args.posonlyargs, *function.args.args]]
    pairs = [*zip(node.args, names, strict=False), *((each.value, each.arg or "") for each in node.keywords)]
    return [(root, name) for value, name in pairs if (root := _root(value)) is not None]


def _through(
    names_of: Callable[[ast.FunctionDef, Functions], set[str]],
    node: ast.AST,
    function: ast.FunctionDef,
    functions: Functions,
) -> set[str]:
    """Names that a call passes to parameters that an analysis names; asked once a call, whatever it passes."""
    passed = _passed(node, functions)
    inner = names_of(functions[_called(node)], {**functions, function.name: _NOTHING}) if passed else set[str]()
    return {outer for outer, name in passed if name in inner}


def _look(node: ast.AST, roles: Roles) -> None:
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).split(".")[-1]
        arguments = {"make_block_ptr": node.args[4:5], "arange": node.args[:2], "zeros": node.args[:1]}
        arguments |= {"full": node.args[:1], "make_tensor_descriptor": node.args[3:4]}
        keywords = [each.value for each in node.keywords if each.arg in ("block_shape", "end")]
        for part in [*arguments.get(called, []), *keywords]:
            roles.blocks |= _sizes(part) & roles.constants
        if called == "make_block_ptr":
            roles.extents |= _extents(node)
            order = _parts(node).get("order")
            for position, part in enumerate(order.elts if isinstance(order, ast.Tuple | ast.List) else ()):
                if isinstance(part, ast.Name) and isinstance(order, ast.Tuple | ast.List):
                    roles.axes[part.id] = len(order.elts) - 1 - position
    elif isinstance(node, ast.If | ast.IfExp | ast.BoolOp):
        tests = node.values if isinstance(node, ast.BoolOp) else [node.test]
        for test in tests:
            bare = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
            if isinstance(bare, ast.Name) and bare.id in roles.constants:
                roles.flags.add(bare.id)
    elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id in roles.constants:
        for other in node.comparators:
            for each in ast.walk(other):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    roles.texts.setdefault(node.left.id, []).append(each.value)


def _sizes(node: ast.AST) -> set[str]:
    """The names in the sizes of a block; what only chooses between sizes is none."""
    if isinstance(node, ast.Name):
        return {node.id}
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
    return {name for part in parts for name in _sizes(part)}


def _parts(call: ast.Call) -> dict[str, ast.expr]:
    names = ("base", "shape", "strides", "offsets", "block_shape", "order")
    return dict(zip(names, call.args, strict=False)) | {each.arg or "": each.value for each in call.keywords}


def _extents(call: ast.Call) -> set[str]:
    shape = _parts(call).get("shape")
    return {each.id for each in shape.elts if isinstance(each, ast.Name)} if isinstance(shape, ast.Tuple) else set()


def _tuples(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Variables that are assigned a tuple, as the `order` of block pointers may be."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() as value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Tuple() as value):
                found[name] = value
            case _:
                pass
    return found


def _units(function: ast.FunctionDef, functions: Functions) -> set[str]:
    """Strides along the contiguous dimension, here and in the functions that a function calls."""
    tuples, found = _tuples(function), set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "make_block_ptr":
            found |= _contiguous(node, tuples)
        found |= _through(_units, node, function, functions)
    return found


def _contiguous(call: ast.Call, tuples: Mapping[str, ast.expr]) -> set[str]:
    """The name of the stride that the order of a block pointer puts first."""
    parts = _parts(call)
    order, strides = parts.get("order"), parts.get("strides")
    order = tuples.get(order.id) if isinstance(order, ast.Name) else order
    if isinstance(order, ast.Tuple | ast.List) and isinstance(strides, ast.Tuple | ast.List) and order.elts:
        first = order.elts[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, int) and len(strides.elts) > 1:
            stride = strides.elts[first.value]
            return {stride.id} if isinstance(stride, ast.Name) else set()
    return set()


def _root(node: ast.AST) -> str | None:
    """The pointer that an address starts from: the leftmost name."""
    while True:
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            node = node.func.value
        else:
            return node.id if isinstance(node, ast.Name) else None


def _pointed(function: ast.FunctionDef, functions: Functions) -> set[str]:
    """Names that are pointers, or from which pointers are computed."""
    found: set[str] = set()
    aliases: list[tuple[str, str]] = []
    for node in ast.walk(function):
        found |= _through(_pointed, node, function, functions)
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).split(".")[-1]
            first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "base"), None)
            takes = called in ("load", "store", "make_block_ptr", "make_tensor_descriptor") or called.startswith(
                "atomic_"
            )
            root = _root(first) if takes and first is not None else None
            if root is not None:
                found.add(root)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for value in (node.value.body, node.value.orelse) if isinstance(node.value, ast.IfExp) else (node.value,):
                root = _root(value)
                if root is not None:
                    aliases.append((node.targets[0].id, root))
        elif isinstance(node, ast.Attribute) and node.attr == "element_ty":
            inner = node.value
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
                found.add(inner.value.id)
    while True:
        more = {root for name, root in aliases if name in found} - found
        if not more:
            return found
        found |= more


def _made(function: ast.FunctionDef) -> dict[str, str]:
    """The arrays that block pointers point into, by the variable that holds the block pointer."""
    found: dict[str, str] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if ast.unparse(call.func).endswith(
                "make_block_ptr"
            ):
                base = _parts(call).get("base")
                found[name] = (_root(base) if base is not None else None) or ""
            case _:
                pass
    return found


def _stored(function: ast.FunctionDef, functions: Functions) -> set[str]:
    """Names of arrays that are written."""
    found: set[str] = set()
    made = _made(function)
    for node in ast.walk(function):
        found |= _through(_stored, node, function, functions)
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).split(".")[-1] == "store":
            root = _root(node.args[0]) or ""
            found.add(made.get(root, root))
    return found


def _integer_pointers(function: ast.FunctionDef, pointed: set[str]) -> set[str]:
    """Arrays whose elements are cut to integers or index other arrays."""
    found: set[str] = {name for name in pointed if any(part in name for part in ("seqlens", "indices", "offsets"))}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            inner = node.func.value
            to_integer = node.args and ast.unparse(node.args[0]).endswith(("int32", "int64"))
            if to_integer and isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("load"):
                root = _root(inner.args[0])
                if root is not None:
                    found.add(root)
    return found | _indexing(function)


def _holds(name: str, side_by_side: Mapping[str, str]) -> str:
    """What an array of integers holds, by what is read side by side and by its name."""
    if name in side_by_side or "seqlens" in name:
        return side_by_side.get(name, "bounds")
    return "counts" if name.endswith("offsets") else "integers"


def _side_by_side(function: ast.FunctionDef) -> dict[str, str]:
    """Arrays of which elements `i` and `i + 1` are read (bounds), or `2 * i` and `2 * i + 1` (pairs)."""
    read: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("load") and node.args:
            read.setdefault(_root(node.args[0]) or "", set()).add(ast.unparse(node.args[0]))
    found: dict[str, str] = {}
    for name, texts in read.items():
        for text in texts:
            if f"{text} + 1" in texts:
                found[name] = "pairs" if text.endswith("* 2") else "bounds"
    return found


_WIDE = frozenset({"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf", "sigmoid", "softmax"})


def _wide(function: ast.FunctionDef) -> set[str]:
    """Arrays whose elements go into exponentials and the like as they are."""
    found: set[str] = set()
    made, loaded = _made(function), _loaded(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in _WIDE:
            for part in (part for arg in node.args for part in ast.walk(arg)):
                if isinstance(part, ast.Name):
                    found.add(loaded.get(part.id, ""))
                elif isinstance(part, ast.Call) and part.args and ast.unparse(part.func).endswith("load"):
                    root = _root(part.args[0]) or ""
                    found.add(made.get(root, root))
    return found


def _loaded(function: ast.FunctionDef) -> dict[str, str]:
    """The arrays that variables were loaded from."""
    found: dict[str, str] = {}
    made = _made(function)
    for node in ast.walk(function):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr="load"), args=[first, *_])
            ):
                root = _root(first) or ""
                found[name] = made.get(root, root)
            case _:
                pass
    return found


def _indexing(function: ast.FunctionDef) -> set[str]:
    """Arrays from which what is loaded becomes a part of an address."""
    loaded = _loaded(function)
    used: set[str] = set()
    addresses = {
        node.args[0].id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name)
        if ast.unparse(node.func).endswith((".load", ".store"))
    }
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value) if name in addresses:
                used |= {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
            case _:
                pass
    found = {loaded[name] for name in used & set(loaded)}
    return found - {""}
