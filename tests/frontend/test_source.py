"""Where kernels are written: text, lines and columns of the user's file."""

from __future__ import annotations

import ast
import importlib.util
import textwrap

import pytest

import mltriton.language as tl
from mltriton.errors import SyntaxNotSupportedError
from mltriton.frontend import names
from mltriton.frontend.source import FunctionSource
from mltriton.frontend.statements import STATEMENTS, unsupported

from .kernels import error_of, marked


class Holder:
    def method(out):  # noqa: N805
        text = """
  a string that is not indented
"""
        return text


def load(tmp_path, text, name="kernel"):
    file = tmp_path / "kernels_of_source.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    specification = importlib.util.spec_from_file_location("kernels_of_source", file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, name)


def test_an_indented_function_keeps_its_lines_and_columns():
    source = FunctionSource(Holder.method)
    assignment, returned = source.tree.body
    first = Holder.method.__code__.co_firstlineno
    assert (assignment.lineno, assignment.col_offset) == (first + 1, 8)
    assert (returned.lineno, returned.value.col_offset) == (first + 4, 15)
    assert ast.literal_eval(assignment.value) == "\n  a string that is not indented\n"


def test_decorators_belong_to_the_function(tmp_path):
    kernel = load(
        tmp_path,
        """
        import mltriton as triton

        @triton.jit
        def kernel(
            x,
            y,
        ):
            return x
        """,
    )
    assert kernel.source.first_line == 4
    assert kernel.source.text.startswith("@triton.jit\ndef kernel(")
    assert kernel.source.tree.body[0].lineno == 9


def test_columns_count_characters(tmp_path):
    kernel = load(
        tmp_path,
        """
        import mltriton as triton
        import mltriton.language as tl

        @triton.jit
        def kernel(out):
            tl.static_print("grün → ∞", undefined)
        """,
    )
    error = error_of(kernel, out="*i32")
    assert marked(error) == "undefined)"
    assert error.column == 32


def test_a_file_edited_later_does_not_matter(tmp_path):
    text = """
        import mltriton as triton
        import mltriton.language as tl

        @triton.jit
        def kernel(out):
            tl.store(out, undefined)
        """
    kernel = load(tmp_path, text)
    (tmp_path / "kernels_of_source.py").write_text("# nothing is here any more\n")
    assert marked(error_of(kernel, out="*i32")) == "undefined)"


def test_a_function_without_text():
    namespace = {"tl": tl}
    exec("def kernel(out):\n    tl.store(out, 1)", namespace)
    error = error_of(namespace["kernel"], out="*i32")
    assert isinstance(error, SyntaxNotSupportedError)
    assert "the source of kernel cannot be read" in str(error)


def test_a_lambda_is_no_kernel():
    kernel = lambda out: tl.store(out, 1)  # noqa: E731
    assert "a lambda cannot be a kernel" in str(error_of(kernel, out="*i32"))


def test_an_async_function_is_no_kernel():
    async def kernel(out):
        tl.store(out, 1)

    assert "an async function" in str(error_of(kernel, out="*i32"))


STATEMENT_MISTAKES = {
    "try": ("try:\n    pass\nexcept ValueError:\n    pass", "no exceptions"),
    "raise": ("raise ValueError", "tl.static_assert"),
    "with": ("with out:\n    pass", "no context managers"),
    "a nested function": ("def f():\n    pass", "decorate it with @triton.jit"),
    "a class": ("class C:\n    pass", "tuples"),
    "global": ("global g", "through a pointer"),
    "import": ("import math", "top of the file"),
    "match": ("match out:\n    case 1:\n        pass", "if and elif"),
    "del": ("del out", "costs nothing"),
}


@pytest.mark.parametrize("what", STATEMENT_MISTAKES)
def test_unsupported_statements_are_named(tmp_path, what):
    statement, hint = STATEMENT_MISTAKES[what]
    text = "import mltriton as triton\n@triton.jit\ndef kernel(out):\n" + textwrap.indent(statement, "    ")
    error = error_of(load(tmp_path, text), out="*i32")
    assert isinstance(error, SyntaxNotSupportedError)
    assert f"a kernel cannot contain {what}" in str(error)
    assert hint in str(error)
    assert marked(error) == statement.splitlines()[0]


def test_every_kind_of_statement_is_handled_or_named():
    kinds = [kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.stmt)]
    for kind in kinds:
        if kind not in STATEMENTS:
            assert "a kernel cannot contain" in str(unsupported(kind()))


def body(text):
    return ast.parse(textwrap.dedent(text)).body


def test_assigned_names():
    text = """
        a = b, *c = 1
        d += (e := 2)
        for f, (g, h) in x:
            i: int = [j for j in k]
        if m:
            n[0] = 1
        o.p = 1
        """
    assert list(names.assigned(body(text))) == ["a", "b", "c", "d", "e", "f", "g", "h", "i", "n"]


def test_ways_out():
    text = """
        if a:
            return
        for i in x:
            break
        while y:
            if z:
                continue
        """
    assert list(names.exits(body(text))) == [ast.Return]
    assert list(names.exits(body("for i in x:\n    return"))) == [ast.Return]
    assert set(names.exits(body("if a:\n    break\nelse:\n    continue"))) == {ast.Break, ast.Continue}
    assert names.exits(body("x = 1")) == {}


ENDS = {
    "dead code": "def kernel(x):\n    return x\n    x = 1\n",
    "pass": "def kernel(x):\n    if x:\n        pass\n",
    "string": "def kernel(x):\n    y = '''\nnot indented\n'''\n    return y\n",
    "comment inside": "def kernel(x):\n    y = 1\n# not indented\n    return y\n",
    "nested": "def kernel(x):\n    return [\n        y\n        for y in (\n            x,\n        )\n    ]\n",
    "header": "def kernel(\n    x,\n):\n    return x\n",
    "declaration": "def kernel(x):\n    global g\n",
    "closing bracket": "def kernel(x):\n    y = (\n        x\n)\n    # end\n",
    "docstring": 'def kernel(x):\n    """Says\n    nothing.\n    """\n',
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("after", ["", "\n\n# a comment\nother = 1\n", "\nclass Other:\n    pass\n"])
def test_a_function_ends_where_it_does(tmp_path, kind, after):
    kernel = load(tmp_path, ENDS[kind] + after)
    source = FunctionSource(kernel)
    assert source.text == ENDS[kind]
    assert source.tree.name == "kernel"


OTHER_CONSTANT = "import mltriton as triton\\n\\n\\n\\n@triton.jit\\ndef kernel(out):\\n    out.to(2.0)\\n"


@pytest.mark.parametrize("edit", ["# no kernel\\n" * 20, OTHER_CONSTANT, "\\n"], ids=["comments", "constant", "empty"])
def test_a_file_that_was_edited_while_it_was_imported_is_noticed(tmp_path, edit):
    text = f"""
        import mltriton as triton
        from pathlib import Path
        Path(__file__).write_text("{edit}")
        @triton.jit
        def kernel(out):
            out.to(1.0)
        """
    kernel = load(tmp_path, text)
    with pytest.raises(SyntaxNotSupportedError, match=r"not what Python runs|cannot be read"):
        _ = kernel.source.tree


def test_a_lambda_over_several_lines_is_a_named_error():
    source = FunctionSource(
        (
            lambda out: None,
        )[0]
    )  # fmt: skip
    with pytest.raises(SyntaxNotSupportedError, match="a lambda cannot be a kernel"):
        _ = source.tree
