"""Texts changed at random - programs at every level, pipelines, signatures - are read or refused by a named error."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

import mltriton
from mltriton.compiler import IR_LEVELS
from mltriton.errors import IRSyntaxError, TritonError
from mltriton.frontend.signature import parse_signature
from mltriton.ir.parser import parse_module
from mltriton.ir.verifier import verify
from mltriton.kernels.normalization import softmax_kernel
from mltriton.passes.levels import verify_level
from mltriton.passes.pipeline import parse_pipeline
from mltriton.targets.registry import spec
from mltriton.tools.opt import run_opt

SIGNATURE = {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "x_stride": "i32", "y_stride": "i32", "n_columns": "i32"}
WORD = re.compile(r"[\w%#@!.]+|[^\s\w]")
PIECES = (
    *("{", "}", "(", ")", "<", ">", "#", '"', "//", "->", ":", "=", ",", "@", "\n", "\0", "é"),
    *("%0", "%x", "%x:99999999999 =", "^bb0", "#blo", "#blocked = 1", "loc(", "x", "inf", "true", "01", "-1", "0"),
    *("99999999999999999999999", "9" * 5000, "0xFFFFFFFFF", "1e999", "array<i32: 1>", "dense<1.0>", "dense<"),
    *("!tt.ptr<f32>", "tensor<", "tensor<0xf32>", "tensor<-1xf32>", "tensor<3xf32>", "i0", "i99999999999", "f13"),
    *("module {", "tt.func", "scf.for", "tt.load", "tt.return", "arith.constant"),
)


@cache
def programs() -> tuple[str, ...]:
    compiled = mltriton.compile(softmax_kernel, SIGNATURE, {"FLOAT": mltriton.language.float32, "BLOCK": 64})
    return tuple(compiled.asm[level] for level in IR_LEVELS)


def mutated(text: str, draw: random.Random, pieces=PIECES) -> str:
    """The text with one to three pieces put in, replaced, left out, doubled, cut off, or lines exchanged."""
    for _ in range(draw.randint(1, 3)):
        words = [found.span() for found in WORD.finditer(text)]
        if not words:
            return text
        (a, b), (c, d) = draw.choice(words), draw.choice(words)
        lines = text.split("\n")
        draw.shuffle(swapped := lines[:])
        at = draw.randrange(len(lines))
        text = draw.choice(
            [
                text[:a] + draw.choice(pieces) + text[a:],
                text[:a] + draw.choice(pieces) + text[b:],
                text[:a] + text[b:],
                text[:a] + text[c:d] + text[b:],
                text[: draw.randrange(len(text))],
                "\n".join(swapped if len(lines) < 4 else lines[:at] + lines[at + 1 :]),
                "\n".join([*lines[:at], *lines[at : at + 1] * 2, *lines[at + 1 :]]),
            ]
        )
    return text


def read(text: str) -> None:
    try:
        module = parse_module(text)
        verify(module)
        verify_level(module)
    except TritonError:
        return


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
def test_programs(seed):
    draw = random.Random(seed)
    for _ in range(60):
        text = mutated(draw.choice(programs()), draw)
        try:
            read(text)
        except Exception as failure:
            raise AssertionError(f"{type(failure).__name__} of:\n{text}") from failure


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_pipelines(seed):
    draw = random.Random(seed)
    pipelines = [text for name in ("cpu", "xe:pvc") for text in spec(name).pipeline if text]
    for _ in range(300):
        text = mutated(
            draw.choice(pipelines), draw, ("{", "}", ",", "=", " ", '"', "9" * 5000, "x", "none", "1:2", "é")
        )
        try:
            parse_pipeline(text)
        except TritonError:
            continue
        except Exception as failure:
            raise AssertionError(f"{type(failure).__name__} of: {text[:200]}") from failure


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_signatures(seed):
    draw = random.Random(seed)
    bases = ["*fp32:16, i32, 1024", "*fp32, *bf16:16, i64:1, fp8e5, 'abc', None, True", "(*fp32, i32), 3.5"]
    pieces = ("*", ":", "(", ")", ",", '"', "'", "9" * 5000, "1e999", "0x", "\0", "é", "[", "{", "-", "lambda: 0", " ")
    for _ in range(300):
        text = mutated(draw.choice(bases), draw, pieces)
        try:
            parse_signature(text, ["a", "b", "c"])
        except TritonError:
            continue
        except Exception as failure:
            raise AssertionError(f"{type(failure).__name__} of: {text[:200]}") from failure


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#blo", "#blo stands where an operation"),
        ('%x:99999999999 = "tt.f"() : () -> ()', "no operation has so many results"),
        ("tt.func @f(%x: i99999999999) {\n}", "unknown type `i99999999999`"),
        (f"tt.func @f(%x: tensor<{'9' * 5000}xf32>) {{\n}}", "too many digits"),
        ('%0 = "arith.constant"() {value = "x"} : () -> i32', "arith.constant"),
        ("%0 = arith.constant unit", "arith.constant"),
    ],
)
def test_what_was_once_no_named_error(text, message):
    with pytest.raises(TritonError, match=re.escape(message)):
        run_opt(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("sizePerWarp = [4], warpsPerCTA = [1, 1], order = [1, 0]", "every list must have 2 sizes"),
        ("sizePerWarp = [4, 4], warpsPerCTA = [1, 1], order = [1, 1]", "order must list every dimension once"),
        (
            "sizePerThread = [1], threadsPerWarp = [1, 1], warpsPerCTA = [1], order = [0]",
            "every list must have 1 sizes",
        ),
    ],
)
def test_encodings_whose_lists_differ(fields, message):
    with pytest.raises(IRSyntaxError, match=message):
        parse_module(f"#b = #ttg.blocked<{{{fields}}}>\nmodule {{\n}}")


def test_modules_inside_each_other():
    depth = 400
    assert run_opt("module {\n" * depth + "}\n" * depth).count("module") == depth
