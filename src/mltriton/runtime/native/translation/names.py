"""Types of machine code, and the names that files of it define.

Level: runtime. Takes annotations and gives types of LLVM.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Type:
    """A type of LLVM; of an address, what stands there: a structure, an array, a number for threads to meet at (`cell`,
    with the order of its accesses), or a function (`result` and `parameters`).
    """

    text: str
    structure: str = ""
    is_address: bool = False
    element: Type | None = None
    count: int = -1
    cell: Type | None = None
    order: str = ""
    result: Type | None = None
    parameters: tuple[Type, ...] = ()
    variadic: bool = False

    @property
    def in_place(self) -> bool:
        """Whether a variable or field of this type is not a value but memory."""
        return self.cell is not None or self.count >= 0


VOID, I1, I32, I64, F64, PTR = map(Type, ("void", "i1", "i32", "i64", "double", "ptr"))
SIMPLE = {"i1": I1, "i8": Type("i8"), "i32": I32, "i64": I64, "f64": F64, "ptr": PTR, "object": PTR}
WORD = Type("ptr", cell=I32, order="seq_cst")
SLOTS, ADDRESSES = Type("ptr", element=Type("ptr", structure="Slot")), Type("ptr", element=PTR)


@dataclass(frozen=True)
class Value:
    """An operand."""

    type: Type
    text: str

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


@dataclass
class Names:
    """What the files define."""

    structures: dict[str, dict[str, Type]] = field(default_factory=dict[str, dict[str, Type]])
    types: dict[str, Type] = field(default_factory=dict[str, Type])
    constants: dict[str, int] = field(default_factory=dict[str, int])
    variables: dict[str, Type] = field(default_factory=dict[str, Type])
    symbols: dict[str, Value] = field(default_factory=dict[str, Value])
    functions: dict[str, Type] = field(default_factory=dict[str, Type])

    def type(self, node: ast.expr | None) -> Type:
        """What an annotation says."""
        match node:
            case None | ast.Constant(value=None):
                return VOID
            case ast.BinOp(op=ast.BitOr()):
                return self.type(node.left)
            case ast.Name(id="Word"):
                return WORD
            case ast.Subscript(value=ast.Name(id="Address")):
                return replace(self.type(node.slice), is_address=True)
            case ast.Name(id="Lock"):
                return replace(WORD, order="release")
            case ast.Name(id=name) if name in SIMPLE:
                return SIMPLE[name]
            case ast.Name(id=name) if name in self.types:
                return self.types[name]
            case ast.Name(id=name):
                return Type("ptr", structure=name)
            case ast.Subscript(value=ast.Name(id="Relaxed")):
                return Type("ptr", cell=self.type(node.slice), order="monotonic")
            case ast.Subscript(slice=ast.Tuple(elts=[array, ast.Constant(value=int() as count)])):
                return replace(self.type(array), count=count)
            case ast.Subscript(value=ast.Name(id="Array")):
                return Type("ptr", element=self.type(node.slice))
            case ast.Subscript(slice=ast.Tuple(elts=[ast.List(elts=parameters), result])):
                return Type("ptr", result=self.type(result), parameters=tuple(map(self.type, parameters)))
            case _:
                raise refused(node, "no type")

    def memory(self, type: Type) -> str:
        """The type of what a field or variable holds."""
        if type.cell is not None:
            return type.cell.text
        if type.count >= 0 and type.element is not None:
            return f"[{type.count} x {self.inline(type.element)}]"
        return type.text

    def inline(self, type: Type) -> str:
        """The type of an array's elements: structures stand there themselves."""
        return f"%{type.structure}" if type.structure and not type.is_address else self.memory(type)


def refused(node: ast.AST, message: str) -> SyntaxError:
    """The error for what is outside of the language."""
    return SyntaxError(f"line {getattr(node, 'lineno', 0)}: {message}: {ast.unparse(node)}")
