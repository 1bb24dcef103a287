"""Python's debugger and its `print` in kernels that run in the reference executor.

Level: Python syntax tree -> `tt`. `breakpoint()`, `pdb.set_trace()` (also right behind `import pdb`) and `print(...)`
become `tt.python`, which carries the variables of the function, or what is printed. Guarantees: a kernel that is
compiled for a machine has no such operation; a debugger there is a named error.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from mltriton.dialects import tt
from mltriton.errors import SyntaxNotSupportedError
from mltriton.frontend.values import is_tuple
from mltriton.ir.operation import Value
from mltriton.language.building import current, target_being_compiled_for
from mltriton.language.constants import constexpr
from mltriton.language.semantic import to_tensor
from mltriton.language.tensor import tensor

if TYPE_CHECKING:
    from mltriton.frontend.frame import Frame

DEBUGGERS = ("pdb", "ipdb", "pudb")
INTERPRETER = "interpreter"  # the target whose kernels Python runs


def debugger_in(callee: Any) -> str | None:
    """The `module:function` of a function that starts a debugger; None for any other."""
    if callee is builtins.breakpoint:
        return "builtins:breakpoint"
    if getattr(callee, "__name__", "") != "set_trace":
        return None
    known = (name for name in DEBUGGERS if callee == getattr(sys.modules.get(name), "set_trace", None))
    return next((f"{name}:set_trace" for name in known), None)


def stop(frame: Frame, node: ast.Call, debugger: str) -> None:
    """Stop there when the kernel runs, with the function's variables."""
    if target_being_compiled_for() != INTERPRETER:
        hint = "Under TRITON_INTERPRET=1, set before the kernel is decorated, it runs in Python and stops here."
        raise frame.error(SyntaxNotSupportedError, node, "a compiled kernel cannot stop in a debugger", hint=hint)
    frame.mark(node)
    _python(debugger, {"variables": {name: frame.scope[name] for name in frame.scope}, "name": frame.source.name})


def import_debugger(frame: Frame, stmt: ast.Import) -> bool:
    """Give the variable of `import pdb` the module; False for other modules."""
    if any(alias.name not in DEBUGGERS for alias in stmt.names):
        return False
    for alias in stmt.names:
        frame.scope.set(alias.asname or alias.name, import_module(alias.name))
    return True


def prints_in_python() -> bool:
    """Whether `print` is Python's."""
    return target_being_compiled_for() == INTERPRETER


def print_(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
    """Python's `print`, of whole blocks."""
    _python("builtins:print", {"values": tuple(values), "sep": sep, "end": end})


def _python(function: str, values: dict[str, Any]) -> None:
    operands: list[Value] = []
    said = _written(values, operands)
    current().create(tt.Python, operands, function=function, values=json.dumps(said), result_types=[])


def _written(value: Any, operands: list[Value]) -> Any:
    """A value as JSON: a tensor is the number of its operand."""
    if isinstance(value, tensor):
        operands.append(to_tensor(value).handle)
        kind = "bool" if value.dtype.is_bool() else "unsigned" if value.dtype.is_int_unsigned() else "same"
        return {"operand": len(operands) - 1, "as": kind}
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {"items": {name: _written(item, operands) for name, item in items}}
    if is_tuple(value):
        return [_written(item, operands) for item in value]
    inner = value.value if isinstance(value, constexpr) else value
    is_plain = inner is None or type(inner) in (bool, int, float, str)
    return {"constant": inner} if is_plain else {"shown": str(value)}
