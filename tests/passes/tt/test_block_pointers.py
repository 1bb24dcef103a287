"""normalize-block-pointers and rewrite-tensor-pointers: block pointers in every kind of control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.errors import PassError
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module

from ..programs import LIBRARY, Program, kernel, transform


@triton.jit
def advance_everywhere(x_ptr, y_ptr, rows, columns, n):
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    x = tl.advance(x, (1, 0))
    y = tl.make_block_ptr(y_ptr, (rows, columns), (columns, 1), (2, 3), (4, 8), (1, 0))
    total = tl.zeros([4, 8], tl.float32)
    for i in range(n):
        for _ in range(i):
            total += tl.load(x, boundary_check=(0, 1), padding_option="zero")
            x = tl.advance(x, (0, 1))
        x = tl.advance(x, (1, -2))
    tl.store(y, total + tl.load(x, boundary_check=(0, 1)), boundary_check=(1, 0))


@triton.jit
def branches(x_ptr, y_ptr, rows, columns, n):
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    y = tl.make_block_ptr(y_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    total = tl.zeros([4, 8], tl.float32)
    for i in range(n):
        if i % 2 == 0:
            x = tl.advance(x, (i, 1))
        else:
            x = tl.advance(x, (0, 1))
            if i == 3:
                x = tl.advance(x, (0, -2))
        total += tl.load(x, boundary_check=(0, 1), padding_option="zero")
    tl.store(y, total, boundary_check=(0, 1))


@triton.jit
def two_bases(x_ptr, y_ptr, rows, columns, n):
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    other = tl.make_block_ptr(x_ptr + 5, (columns, rows), (1, columns), (1, 0), (4, 8), (0, 1))
    y = tl.make_block_ptr(y_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    total = tl.zeros([4, 8], tl.float32)
    for i in range(n):
        if i > 2:
            x = other
        total += tl.load(x, boundary_check=(0, 1), padding_option="zero")
        x = tl.advance(x, (0, 1))
    tl.store(y, total, boundary_check=(0, 1))


@triton.jit
def while_loop(x_ptr, y_ptr, rows, columns, n):
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    y = tl.make_block_ptr(y_ptr, (rows, columns), (columns, 1), (0, 0), (4, 8), (1, 0))
    total = tl.zeros([4, 8], tl.float32)
    i = 0
    while i < n:
        total += tl.load(x, boundary_check=(0, 1), padding_option="zero")
        x = tl.advance(x, (1, 1))
        i += 1
        if i == 2:
            x = tl.make_block_ptr(x_ptr + i, (rows, columns), (columns, 1), (i, 0), (4, 8), (1, 0))
    total += tl.load(x, boundary_check=(0, 1), padding_option="zero")
    tl.store(y, total, boundary_check=(0, 1))


@triton.jit
def unchecked(x_ptr, y_ptr, rows, columns, n):
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (0, 8), (4, 16), (1, 0))
    y = tl.make_block_ptr(y_ptr, (rows, columns), (columns, 1), (0, 8), (4, 16), (1, 0))
    nan = tl.load(x, boundary_check=(1,), padding_option="nan")
    tl.store(y, tl.where(nan == nan, nan, n), boundary_check=(0, 1))


def arguments(random: np.random.Generator) -> list[Any]:
    return [random.standard_normal((11, 20)).astype(np.float32), np.zeros((11, 20), np.float32), 11, 20, 5]


KERNELS = [advance_everywhere, branches, two_bases, while_loop, unchecked]


def program(fn: Any) -> Program:
    return kernel(fn, "*fp32, *fp32, i32, i32, i32", arguments)


def handed_on(module: Module) -> int:
    """Block pointers that cross an operation with regions."""
    flow = (op for op in module.walk() if isinstance(op, scf.For | scf.If | scf.While))
    return sum(is_block_pointer(result.type) for op in flow for result in op.results)


@pytest.mark.parametrize("fn", KERNELS)
def test_block_pointers_are_made_where_they_are_used(fn: Any) -> None:
    module = program(fn).check("normalize-block-pointers")
    assert handed_on(module) == 0
    assert not any(isinstance(op, tt.Advance) for op in module.walk())
    program(fn).check("normalize-block-pointers,split-uniform-increments,canonicalize,licm,cse,dce")


def test_one_of_two_block_pointers_is_chosen() -> None:
    module = program(two_bases).transformed("canonicalize")
    assert any(isinstance(op, arith.Select) and is_block_pointer(op.result.type) for op in module.walk())
    assert handed_on(program(two_bases).check("canonicalize,normalize-block-pointers")) == 0


@pytest.mark.parametrize("fn", KERNELS)
def test_tensors_of_pointers_do_the_same(fn: Any) -> None:
    module = program(fn).check("rewrite-tensor-pointers,canonicalize,reorder-broadcast,cse,dce")
    assert not any(isinstance(op, tt.MakeTensorPtr) for op in module.walk())


@pytest.mark.parametrize("name", LIBRARY)
def test_library(name: str) -> None:
    LIBRARY[name].check("normalize-block-pointers")
    module = LIBRARY[name].check("rewrite-tensor-pointers")
    assert not any(isinstance(op, tt.MakeTensorPtr | tt.MakeTensorDesc) for op in module.walk())


def test_only_what_differs_is_handed_on() -> None:
    module = program(branches).transformed("normalize-block-pointers,canonicalize,dce")
    loop = next(op for op in module.walk() if isinstance(op, scf.For))
    assert [str(result.type) for result in loop.results] == ["tensor<4x8xf32>", "i32", "i32"]
    module = program(two_bases).transformed("normalize-block-pointers,canonicalize,dce")
    loop = next(op for op in module.walk() if isinstance(op, scf.For))
    assert "!tt.ptr<f32>" in [str(result.type) for result in loop.results]


def test_a_parameter_cannot_be_taken_apart() -> None:
    text = """
    tt.func @f(%x: !tt.ptr<tensor<4xf32>>) {
      %0 = tt.load %x : !tt.ptr<tensor<4xf32>>
      tt.return
    }"""
    with pytest.raises(PassError, match="parameter of @f"):
        transform(parse_module(text), "normalize-block-pointers")


def test_a_descriptor_made_elsewhere_cannot_be_taken_apart() -> None:
    text = """
    tt.func @f(%x: !tt.tensordesc<tensor<4xf32>>, %i: i32) {
      %0 = tt.descriptor_load %x[%i] : !tt.tensordesc<tensor<4xf32>> -> tensor<4xf32>
      tt.return
    }"""
    with pytest.raises(PassError, match="descriptor"):
        transform(parse_module(text), "rewrite-tensor-pointers")
