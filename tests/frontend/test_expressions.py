"""Expressions and assignments: constants computed when compiling, tensors by operations."""

from __future__ import annotations

import ast
import math
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, NameNotFoundError, SyntaxNotSupportedError, TypeMismatchError
from mltriton.frontend.expressions import EXPRESSIONS, unsupported
from mltriton.runtime.jit import jit

from .kernels import error_of, marked, scalar, text_of, values

WIDTH = tl.constexpr(8)
ANNOTATED: tl.constexpr = 3
PLAIN = 5


class Pair(NamedTuple):
    first: object
    second: object


def test_constants_are_computed_when_compiling():
    def computed(out, N: tl.constexpr):
        size: tl.constexpr = (N * 2 + 6) // 3 - 2**1 % 5
        tl.store(out + tl.arange(0, size), 1)

    assert "end = 4" in text_of(computed, out="*i32", N=6)


@pytest.mark.parametrize(
    "expression",
    ["x + 3", "3 - x", "x * x", "x // 3", "x % 3", "-x", "+x", "~x", "x & 6", "x | 8", "x ^ 5", "x << 2", "x >> 1"],
)
def test_operators_mean_what_python_means(expression, tmp_path, monkeypatch):
    file = tmp_path / "kernels_of_operators.py"
    file.write_text(f"import mltriton.language as tl\ndef kernel(out, x):\n    tl.store(out, {expression})\n")
    namespace: dict[str, object] = {"tl": tl}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    assert scalar(namespace["kernel"], 11) == eval(expression, {"x": 11})


@pytest.mark.parametrize(("symbol", "holds"), [("<", 0), ("<=", 1), (">", 0), (">=", 1), ("==", 1), ("!=", 0)])
def test_comparisons(symbol, holds, tmp_path):
    file = tmp_path / "kernels_of_comparisons.py"
    file.write_text(f"def kernel(out, x):\n    tl.store(out, (x {symbol} 4).to(tl.int32))\n")
    namespace: dict[str, object] = {"tl": tl}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    assert scalar(namespace["kernel"], 4) == holds


def test_assigned_numbers_become_tensors():
    def assigned(out):
        x = 1
        y = 2.5
        tl.static_assert(x.dtype == tl.int32)
        tl.static_assert(y.dtype == tl.float32)
        tl.store(out, x)

    assert scalar(assigned) == 1


def test_annotated_numbers_stay_constants():
    def annotated(out):
        x: tl.constexpr = 4
        y: "tl.constexpr" = x + 4
        tl.store(out + tl.arange(0, y), x)

    assert values(annotated).tolist() == [4] * 8


def test_augmented_assignment():
    def augmented(out, x):
        x += 3
        x *= 2
        x -= 1
        x //= 3
        tl.store(out, x)

    assert scalar(augmented, 5) == ((5 + 3) * 2 - 1) // 3


def test_several_targets():
    def several(out, x):
        a = b = x + 1
        tl.store(out, a)
        tl.store(out + 1, b)

    assert values(several, 4).tolist()[:2] == [5, 5]


def test_unpacking():
    def unpacked(out, x):
        a, (b, c), *rest, d = x, (x + 1, x + 2), x + 3, x + 4, x + 5
        tl.store(out + 0, a)
        tl.store(out + 1, b)
        tl.store(out + 2, c)
        tl.store(out + 3, rest[0] + rest[1])
        tl.store(out + 4, d)
        tl.static_assert(len(rest) == 2)

    assert values(unpacked, 10).tolist()[:5] == [10, 11, 12, 27, 15]


def test_tuples():
    def tuples(out, x):
        t = (x, x + 1) + (x + 2,)
        tl.store(out + 0, t[0])
        tl.store(out + 1, t[1])
        tl.store(out + 2, t[-1])
        tl.static_assert(len(t[1:]) == 2)
        tl.static_assert(3 in (1, 2, 3))
        tl.static_assert("a" not in ("b", "c"))

    assert values(tuples, 10).tolist()[:3] == [10, 11, 12]


def test_named_tuples():
    def named(out, x):
        pair = Pair(x, second=x + 1)
        tl.store(out, pair.first * pair.second)

    assert scalar(named, 6) == 42


def test_list_comprehension():
    def listed(out, x):
        items = [x + i for i in range(4) if i != 2]
        tl.static_assert(len(items) == 3)
        for i, item in enumerate(items):
            tl.store(out + i, item)

    assert values(listed, 10).tolist()[:4] == [10, 11, 13, -1]


def test_walrus():
    def walrus(out, x):
        if (y := x * 2) > 10:
            tl.store(out, y)

    assert scalar(walrus, 6) == 12
    assert scalar(walrus, 5) == -1


def test_slices_add_dimensions():
    def outer(out):
        i = tl.arange(0, 2)
        j = tl.arange(0, 4)
        tl.store(out + i[:, None] * 4 + j[None, :], i[:, None] * 10 + j[None, ...])

    assert values(outer).tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_methods_and_attributes_of_tensors():
    def methods(out):
        x = tl.arange(0, 8)
        tl.static_assert(x.shape[0] == 8)
        tl.static_assert(x.dtype == tl.int32)
        tl.static_assert(x.to(tl.float16).dtype.is_floating())
        tl.store(out, x.sum(0))
        tl.store(out + 1, x.max(axis=0).to(tl.int32))
        tl.static_assert(x[:, None].T.shape == (1, 8))

    assert values(methods).tolist()[:2] == [28, 7]


def test_element_type_of_a_pointer():
    def pointed(out, x):
        tl.store(out, x.to(out.dtype.element_ty))

    assert scalar(pointed, 3, dtype="fp32") == 3.0


def test_none_and_identity():
    def optional(out, x, extra):
        if extra is not None:
            x += extra
        tl.store(out, x)

    assert scalar(optional, 3, extra=None) == 3
    assert scalar(optional, 3, 4) == 7


def test_constants_decide_before_the_rest_is_looked_at():
    def guarded(out, x, extra):
        if extra is not None and extra > 3:
            tl.store(out, 1)
        elif extra is None or extra.no_such_attribute:
            tl.store(out, 2)

    assert scalar(guarded, 3, extra=None) == 2


def test_f_strings(capsys):
    def shown(out, N: tl.constexpr):
        tl.static_print(f"N is {N:04d}, {N!r}, {'x' * 2}")
        tl.static_assert(N == 12, f"N must be 12, not {N}")
        tl.store(out, N)

    assert scalar(shown, N=12) == 12
    assert capsys.readouterr().out == "N is 0012, 12, xx\n"


def test_numbers_and_dtypes_of_torch_are_constants():
    class Limits:
        def __init__(self, kind):
            self.max = {"float32": 2.0**100}[kind]

    torch = ModuleType("torch")
    torch.float32, torch.finfo, torch.inf = "float32", Limits, float("inf")

    def kernel(out):
        tl.static_assert(-torch.finfo(torch.float32).max < -1e30 and torch.inf > 1e38)
        tl.store(out, 1)

    assert scalar(kernel) == 1


def test_pythons_functions_on_constants():
    def functions(out, N: tl.constexpr):
        tl.static_assert(len((1, 2)) == 2)
        tl.static_assert(min(N, 3) == 3 and max(N, 3, 20) == 20)
        tl.static_assert(int(2.7) == 2 and float("inf") > 1e30 and bool(N))
        tl.static_assert(abs(-N) == N)
        tl.static_assert(isinstance(N, int) and isinstance(out, tl.tensor))
        tl.static_assert(hasattr(out, "dtype") and getattr(out, "shape") == ())  # noqa: B009
        tl.static_assert(math.log2(N) == 3 and math.pi > 3)
        tl.store(out, N)

    assert scalar(functions, N=8) == 8


def test_pythons_functions_on_tensors():
    def functions(out, x, y):
        tl.store(out, min(x, y, 5))
        tl.store(out + 1, max(x, y))
        tl.store(out + 2, abs(x - y))
        tl.static_assert(len(tl.arange(0, 8)) == 8)

    assert values(functions, 3, 9).tolist()[:3] == [3, 9, 6]


def test_globals():
    def uses(out):
        tl.store(out, WIDTH + ANNOTATED)

    assert scalar(uses) == 11

    def plain(out):
        tl.store(out, PLAIN)

    error = error_of(plain, out="*i32")
    assert isinstance(error, NameNotFoundError)
    assert marked(error) == "PLAIN)"
    assert "PLAIN = tl.constexpr(...)" in str(error)


def test_closures():
    size = tl.constexpr(4)
    plain = 4

    def uses(out):
        tl.store(out + tl.arange(0, size), size)

    assert values(uses).tolist() == [4] * 4 + [-1] * 4

    def uses_plain(out):
        tl.store(out, plain)

    assert isinstance(error_of(uses_plain, out="*i32"), NameNotFoundError)


def test_assert():
    def asserted(out, N: tl.constexpr):
        assert N > 3, "too small"
        tl.store(out, N)

    assert scalar(asserted, N=4) == 4
    error = error_of(asserted, out="*i32", N=3)
    assert type(error).__name__ == "AssertionFailed"
    assert marked(error) == 'assert N > 3, "too small"'
    assert "too small" in str(error)


def test_assert_of_a_value_checks_when_the_kernel_runs():
    def asserted(out, x):
        assert x > 3, "too small"

    assert "tt.assert" in text_of(asserted, debug=True, out="*i32", x="i32")
    assert "tt.assert" not in text_of(asserted, out="*i32", x="i32")


def test_values_are_named_after_variables():
    def named(out, x):
        """Docstrings are no statements."""
        twice = x * 2
        pass
        tl.store(out, twice)

    assert "%twice = arith.muli %x" in text_of(named, out="*i32", x="i32")


def test_every_kind_of_expression_is_handled_or_named():
    kinds = [kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.expr)]
    for kind in kinds:
        if kind not in EXPRESSIONS:
            assert "a kernel cannot contain" in str(unsupported(kind()))


@pytest.mark.parametrize(
    ("kind", "error_class", "where"),
    [
        ("unknown", NameNotFoundError, "undefined)"),
        ("attribute", NameNotFoundError, "x.nothing)"),
        ("module", NameNotFoundError, "tl.lood(out))"),
        ("lambda", SyntaxNotSupportedError, "lambda y: y"),
        ("dict", SyntaxNotSupportedError, "{1: 2}"),
        ("matmul", SyntaxNotSupportedError, "x @ x)"),
        ("bytes", SyntaxNotSupportedError, 'b"a"'),
        ("types", TypeMismatchError, 'x + "a")'),
        ("unary", ConstexprError, '-"a"'),
        ("unpack", TypeMismatchError, "a, b, c = x, x"),
        ("index", TypeMismatchError, "(x, x)[2])"),
        ("runtime index", ConstexprError, "(x, x)[x])"),
        ("iterate", TypeMismatchError, "a, b = x"),
        ("store element", SyntaxNotSupportedError, "x[0] = 1"),
        ("store item", SyntaxNotSupportedError, "t[0] = 1"),
        ("attribute target", SyntaxNotSupportedError, "x.y = 1"),
        ("f-string", ConstexprError, 'x}")'),
        ("in", ConstexprError, "x in (1, 2):"),
        ("constant", ConstexprError, "tl.arange(0, y))"),
        ("zero", ConstexprError, "1 // 0)"),
        ("int", ConstexprError, "int(x))"),
        ("python function", NameNotFoundError, "scalar(x)"),
        ("star star", SyntaxNotSupportedError, "dict(value=1))"),
        ("not callable", TypeMismatchError, "x(1)"),
    ],
)
def test_mistakes_are_named_and_placed(kind, error_class, where):
    error = error_of(MISTAKES[kind], out="*i32", x="i32")
    assert type(error) is error_class, repr(error)
    assert marked(error) == where


def _mistakes():
    def unknown(out, x):
        tl.store(out, undefined)  # noqa: F821

    def attribute(out, x):
        tl.store(out, x.nothing)

    def module(out, x):
        tl.store(out, tl.lood(out))

    def lambda_(out, x):
        f = lambda y: y  # noqa: E731

    def dict_(out, x):
        d = {1: 2}

    def matmul(out, x):
        tl.store(out, x @ x)

    def bytes_(out, x):
        b = b"a"

    def types(out, x):
        tl.store(out, x + "a")

    def unary(out, x):
        y = -"a"

    def unpack(out, x):
        a, b, c = x, x

    def index(out, x):
        tl.store(out, (x, x)[2])

    def runtime_index(out, x):
        tl.store(out, (x, x)[x])

    def iterate(out, x):
        a, b = x

    def store_element(out, x):
        x[0] = 1

    def store_item(out, x):
        t = (x, x)
        t[0] = 1

    def attribute_target(out, x):
        x.y = 1

    def f_string(out, x):
        tl.static_print(f"{x}")

    def in_(out, x):
        if x in (1, 2):
            tl.store(out, x)

    def constant(out, x):
        y: tl.constexpr = x
        tl.store(out, tl.arange(0, y))

    def zero(out, x):
        tl.store(out, 1 // 0)

    def int_(out, x):
        tl.store(out, int(x))

    def python_function(out, x):
        scalar(x)

    def star_star(out, x):
        tl.store(out, **dict(value=1))

    def not_callable(out, x):
        x(1)

    functions = [f for f in locals().values()]
    return {f.__name__.strip("_").replace("_", " "): f for f in functions}


MISTAKES = _mistakes()
MISTAKES["f-string"] = MISTAKES["f string"]


def test_numpy_constants_are_not_needed():
    assert np.int32(3) == 3


def test_calls_in_expressions_are_evaluated_once():
    @jit
    def counted(out):
        return tl.atomic_add(out, 1)

    def chained(out):
        tl.store(out + 1, (-10 < counted(out) < 10).to(tl.int32))

    assert values(chained).tolist()[:2] == [0, 1]
