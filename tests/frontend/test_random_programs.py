"""Random programs of branches and loops mean the same in Python and, compiled, in the reference executor."""

from __future__ import annotations

import importlib.util
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mltriton.language as tl
from mltriton.runtime.jit import jit

from .kernels import values

NAMES = ("a", "b", "c")
_numbers = itertools.count()


@st.composite
def expressions(draw, depth=2):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*NAMES, "1", "2", "7", "100"]))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    if draw(st.integers(0, 4)) == 0:
        return f"({left} if {draw(conditions(depth - 1))} else {right})"
    return f"(({left} {draw(st.sampled_from(['+', '*', '-', '^', '|']))} {right}) & 255)"


@st.composite
def conditions(draw, depth=1):
    simple = f"{draw(expressions(0))} {draw(st.sampled_from(['<', '<=', '>', '==', '!=']))} {draw(expressions(0))}"
    if depth == 0:
        return simple
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return f"({draw(conditions(depth - 1))} and {draw(conditions(depth - 1))})"
    if kind == 1:
        return f"(not {draw(conditions(depth - 1))} or {draw(conditions(depth - 1))})"
    if kind == 2:
        return f"({draw(expressions(0))} <= {draw(expressions(0))} < {draw(expressions(0))})"
    if kind == 3:
        return f"({draw(st.sampled_from(NAMES))} & 1) == 0"
    return simple


@st.composite
def blocks(draw, depth, in_loop, may_return):
    """Lines of a block; the ways out that may stand in it depend on where it stands."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(depth, in_loop, may_return))
    return lines


@st.composite
def statements(draw, depth, in_loop, may_return):
    kinds = ["assign", "assign", "augment", "swap"]
    if depth > 0:
        kinds += ["if", "if", "ifelse", "for", "unrolled", "while"]
    if in_loop:
        kinds += ["leave"]
    if may_return:
        kinds += ["return"]
    match draw(st.sampled_from(kinds)):
        case "assign":
            return [f"{draw(st.sampled_from(NAMES))} = {draw(expressions())}"]
        case "augment":
            name = draw(st.sampled_from(NAMES))
            return [f"{name} += {draw(expressions())}", f"{name} &= 255"]
        case "swap":
            return ["a, b = b, a"]
        case "if":
            return [f"if {draw(conditions())}:", *indented(draw(blocks(depth - 1, in_loop, may_return)))]
        case "ifelse":
            lines = [f"if {draw(conditions())}:", *indented(draw(blocks(depth - 1, in_loop, may_return)))]
            return [*lines, "else:", *indented(draw(blocks(depth - 1, in_loop, may_return)))]
        case "for":
            counter = f"i{depth}"
            bound = draw(st.sampled_from(["3", "(a & 3)", "5, 0, -2", "(b & 1), (c & 7), 2"]))
            body = draw(blocks(depth - 1, True, False))
            return [f"for {counter} in range({bound}):", *indented([*body, f"a = (a + {counter}) & 255"])]
        case "unrolled":
            return ["for k in (1, 2):", *indented([*draw(blocks(depth - 1, False, False)), "b = (b + k) & 255"])]
        case "while":
            body = draw(blocks(depth - 1, True, False))
            # The counter comes first, so that no `continue` can keep it from ending the loop.
            counter = f"w{depth}"
            return [f"{counter} = 0", f"while {counter} < 3:", *indented([f"{counter} += 1", *body])]
        case "leave":
            return [f"if {draw(conditions(0))}:", f"    {draw(st.sampled_from(['break', 'continue']))}"]
        case _:
            return [f"if {draw(conditions(0))}:", f"    return ({draw(expressions(1))}) + 0, b, c"]


def indented(lines):
    return [f"    {line}" for line in lines]


def load(directory, lines):
    file = directory / f"random_program_{next(_numbers)}.py"
    file.write_text("\n".join(["def program(a, b, c):", *indented(lines), "    return a, b, c", ""]))
    specification = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.program


def check(directory, lines, inputs):
    plain = load(directory, lines)
    program = jit(plain)

    def kernel(out, a, b, c):
        x, y, z = program(a, b, c)
        tl.store(out, x)
        tl.store(out + 1, y)
        tl.store(out + 2, z)

    for a, b, c in inputs:
        assert values(kernel, a, b, c).tolist()[:3] == list(plain(a, b, c)), "\n".join(lines)


PROGRAMS = blocks(3, False, True)
INPUTS = st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=2, max_size=2)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(lines=PROGRAMS, inputs=INPUTS)
def test_random_programs(tmp_path_factory, lines, inputs):
    check(tmp_path_factory.getbasetemp(), lines, inputs)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=PROGRAMS, inputs=INPUTS)
def test_many_random_programs(tmp_path_factory, lines, inputs):
    check(tmp_path_factory.getbasetemp(), lines, inputs)
