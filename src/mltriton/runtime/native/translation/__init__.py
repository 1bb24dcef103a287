"""Functions of machine code written in Python's syntax, as LLVM text.

Level: runtime. Takes the text of the files in `sources/`; nothing there is ever imported. A class is a structure, and a
value of such a type its address; `sources/language.pyi` says what else there is, and lets a type checker read it all. A
local variable has the type of what it is first given, a number without a type that of the other operand, else i64.
Integers wrap and compare with a sign; `//` and `>>` have none. Every variable is memory on the stack, which LLVM's own
passes take away. Guarantees: what is outside of this language is a `SyntaxError` at its line. `names` has the types,
`instructions`, `values`, `calls` and `statements` what becomes of a function's body.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mltriton.frontend.syntax import parsed

from .names import Names, Type, Value, refused
from .statements import Body

# The attribute groups of functions by what they are marked with.
ATTRIBUTES = {mark: f"nounwind uwtable {mark}".strip() for mark in ("", "noinline", "alwaysinline")}


def translated(sources: Sequence[str]) -> str:
    """The LLVM text of some files together, which see each other's names."""
    statements = [statement for source in sources for statement in parsed(source).body]
    names, lines, functions = Names(), list[str](), list[ast.FunctionDef]()
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            lines.append(_structure(names, statement))
        elif isinstance(statement, ast.FunctionDef):
            functions.append(statement)
        else:
            lines += _variable(names, statement)
    for function in functions:
        names.functions[function.name] = _signature(names, function)
    intrinsics: dict[str, str] = {}
    for function in functions:
        lines.append(_function(names, function, intrinsics))
    lines += [*intrinsics.values(), ""]
    lines += [f"attributes #{number} = {{ {text} }}" for number, text in enumerate(ATTRIBUTES.values())]
    return "\n".join(filter(None, lines)) + "\n"


def _structure(names: Names, node: ast.ClassDef) -> str:
    fields = names.structures[node.name] = {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            fields[item.target.id] = names.type(item.annotation)
    return f"%{node.name} = type {{ {', '.join(map(names.memory, fields.values()))} }}"


def _variable(names: Names, node: ast.stmt) -> list[str]:
    """A variable, a constant or a name of a type; nothing for docstrings and imports."""
    match node:
        case ast.AnnAssign(
            target=ast.Name(id=name),
            annotation=ast.Subscript(slice=ast.Tuple(elts=[type, ast.Constant(value=str() as symbol)])),
        ):
            names.symbols[name] = Value(names.type(type), f"@{symbol}")
            return [f"@{symbol} = external global i8"]
        case ast.AnnAssign(target=ast.Name(id=name)):
            type = names.variables[name] = names.type(node.annotation)
            linkage = "internal global" if name.startswith("_") else "global"
            align = ", align 64" if type.in_place else ""
            return [f"@{name} = {linkage} {names.memory(type)} zeroinitializer{align}"]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript()):
            names.types[name] = names.type(node.value)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=bytes() as data)):
            names.variables[name] = Type("ptr", element=Type("i8"), count=len(data))
            text = "".join(f"\\{byte:02X}" for byte in data)
            return [f'@{name} = internal constant [{len(data)} x i8] c"{text}"']
        case ast.Assign(targets=[ast.Name(id=name)]):
            names.constants[name] = eval(compile(ast.Expression(node.value), name, "eval"))
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for target, value in zip(targets, values, strict=True):
                names.constants[ast.unparse(target)] = ast.literal_eval(value)
        case ast.Expr() | ast.Import() | ast.ImportFrom():
            pass
        case _:
            raise refused(node, "no definition")
    return []


def _signature(names: Names, node: ast.FunctionDef) -> Type:
    parameters = tuple(names.type(argument.annotation) for argument in node.args.args)
    result = names.type(node.returns)
    return Type("ptr", result=result, parameters=parameters, variadic=node.args.vararg is not None)


def _function(names: Names, node: ast.FunctionDef, intrinsics: dict[str, str]) -> str:
    marks = {ast.unparse(decorator) for decorator in node.decorator_list}
    signature = names.functions[node.name]
    assert signature.result is not None
    types = [type.text for type in signature.parameters]
    if "elsewhere" in marks:
        return ""
    if ast.unparse(node.body[-1]) == "...":
        return f"declare {signature.result.text} @{node.name}({', '.join(types + ['...'] * signature.variadic)})"
    number = next((number for number, mark in enumerate(ATTRIBUTES) if mark in marks), 0)
    linkage = "" if "exported" in marks else "internal "
    arguments = ", ".join(f"{t} %{a.arg}" for t, a in zip(types, node.args.args, strict=True))
    body = Body(names, signature.result, intrinsics).text(node, signature)
    return f"define {linkage}{signature.result.text} @{node.name}({arguments}) #{number} {{\n{body}\n}}"
