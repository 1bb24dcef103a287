"""What a lane does on NVIDIA's GPUs: every primitive becomes PTX that ptxas takes, on every device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mltriton.targets.llvm.types import F32, F64, GLOBAL_PTR, I1, I8, I16, I32, I64, VOID, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.nvidia import accesses, atomics, calls, conversions, math, printing
from mltriton.targets.nvidia.devices import DEVICES, Device
from mltriton.targets.nvidia.ptx import compile_ptx
from mltriton.targets.nvidia.ptxas import assemble

Emit = Callable[[Function], None]


@pytest.fixture(params=DEVICES.values(), ids=lambda device: device.name)
def device(request: pytest.FixtureRequest) -> Device:
    return request.param


def kernel(emit: Emit, *parameters: Type) -> str:
    """LLVM IR of a kernel."""
    module = Module()
    named = [(f"arg{number}", type_) for number, type_ in enumerate(parameters)]
    f = module.function("kernel", VOID, named, linkage="ptx_kernel")
    emit(f)
    f.ret()
    return module.text


def compiled(device: Device, emit: Emit, *parameters: Type) -> str:
    """The PTX of a kernel that ptxas takes without a remark."""
    ptx = compile_ptx(kernel(emit, *parameters), device)
    assert assemble(ptx, device).remarks == ()
    return ptx


def in_memory(f: Function, pointer: Value, type_: Type) -> Value:
    if type_ == I1:
        return f.icmp("ne", f.load(I8, pointer), 0)
    return f.load(type_, pointer)


def to_memory(f: Function, value: Value, pointer: Value) -> None:
    f.store(f.cast("zext", value, I8) if value.type == I1 else value, pointer)


HELD = [I1, I8, I16, I32, I64, F32, F64, GLOBAL_PTR]


@pytest.mark.parametrize("type_", HELD, ids=str)
def test_values_of_every_type_travel_between_lanes(device: Device, type_: Type, needs_ptxas: None) -> None:
    def emit(f: Function) -> None:
        value = in_memory(f, f.parameters[0], type_)
        value = calls.shuffle(f, value, f.xor(calls.lane(f), 5))
        to_memory(f, calls.shuffle_xor(f, value, 8), f.parameters[0])

    ptx = compiled(device, emit, GLOBAL_PTR)
    words = max(1, type_.bits // 32)
    assert ptx.count("shfl.sync.idx.b32") == ptx.count("shfl.sync.bfly.b32") == words


def test_places_barriers_and_votes(device: Device, needs_ptxas: None) -> None:
    def emit(f: Function) -> None:
        total = f.add(calls.lane(f), calls.warp(f))
        for axis in range(3):
            total = f.add(total, f.add(calls.program(f, axis), calls.programs(f, axis)))
        calls.arrive(f)
        calls.wait(f)
        calls.barrier(f)
        holds = calls.everywhere(f, f.icmp("eq", total, 1))
        f.store(f.cast("zext", holds, I32), f.parameters[0])

    ptx = compiled(device, emit, GLOBAL_PTR)
    assert ptx.count("bar.sync \t0") == 2 and "vote.sync.all" in ptx


MATH = [(kind.__name__, compute) for kind, compute in math.MATH.items()]


@pytest.mark.parametrize("type_", [F32, F64], ids=str)
@pytest.mark.parametrize("compute", [of for _, of in MATH], ids=[name for name, _ in MATH])
def test_functions(device: Device, compute: math.Compute, type_: Type, needs_ptxas: None) -> None:
    def emit(f: Function) -> None:
        f.store(compute(f, f.load(type_, f.parameters[0])), f.parameters[0])

    compiled(device, emit, GLOBAL_PTR)


@pytest.mark.parametrize("name", ["f8E4M3FN", "f8E5M2"])
def test_floats_of_8_bits_are_converted_by_instructions(device: Device, name: str, needs_ptxas: None) -> None:
    if not device.fp8:
        pytest.skip("the device has no such instructions")

    def emit(f: Function) -> None:
        half = conversions.from_fp8(f, f.load(I8, f.parameters[0]), name)
        f.store(half, f.parameters[0])
        f.store(conversions.to_fp8(f, f.load(F32, f.parameters[0]), name), f.parameters[0])

    assert compiled(device, emit, GLOBAL_PTR).count("cvt.rn") == 2


def test_bf16_is_rounded_by_an_instruction(device: Device, needs_ptxas: None) -> None:
    def emit(f: Function) -> None:
        f.store(conversions.to_bf16(f, f.load(F32, f.parameters[0])), f.parameters[0])

    assert "cvt.rn.bf16.f32" in compiled(device, emit, GLOBAL_PTR)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("type_", HELD[1:], ids=str)
def test_accesses_under_a_condition_are_one_instruction(
    device: Device, type_: Type, width: int, needs_ptxas: None
) -> None:
    shape = accesses.shape_of(type_, width, 16)
    if shape is None:
        assert type_.bytes * width > 16
        return

    def emit(f: Function) -> None:
        mask = f.icmp("slt", calls.lane(f), f.parameters[1])
        kept = [from_memory] * width if (from_memory := in_memory(f, f.parameters[0], type_)) else []
        loaded = accesses.load(f, type_, f.parameters[0], mask, kept, shape)
        accesses.store(f, f.parameters[0], mask, loaded[::-1], shape)

    ptx = compiled(device, emit, GLOBAL_PTR, I32)
    assert ptx.count(f"ld.global{shape.text}") >= 1 and ptx.count(f"st.global{shape.text}") == 1
    assert "bra" not in ptx


@pytest.mark.parametrize("priority", accesses.PRIORITIES)
@pytest.mark.parametrize("width", [1, 4])
def test_priorities_are_those_of_both_caches(device: Device, width: int, priority: str, needs_ptxas: None) -> None:
    shape, hints = accesses.shape_of(F32, width, 16), accesses.hints_of("none", priority)
    assert shape is not None and hints is not None

    def emit(f: Function) -> None:
        mask = f.icmp("slt", calls.lane(f), f.parameters[1])
        loaded = accesses.load(f, F32, f.parameters[0], mask, [constant(F32, 0)] * width, shape, hints)
        accesses.store(f, f.parameters[0], mask, loaded, shape, hints)

    ptx = compiled(device, emit, GLOBAL_PTR, I32)
    for kind in ("ld", "st"):
        assert ptx.count(f"{kind}.global.L1::{priority}.L2::cache_hint{shape.text}") == 1
    assert f"createpolicy.fractional.L2::{priority}.b64" in ptx


def test_operators_come_before_priorities() -> None:
    assert accesses.hints_of("cs", "evict_last") == accesses.Hints(".cs")
    assert accesses.hints_of("none", "normal") is None


def test_functions_without_a_kernel_assemble(device: Device, needs_ptxas: None) -> None:
    """As fragments of assembly are asked about."""
    module = Module()
    f = module.function("check", VOID, [("x", F32), ("to", GLOBAL_PTR)], linkage="")
    f.store(f.parameters[0], f.parameters[1])
    f.ret()
    assert assemble(compile_ptx(module.text, device), device).kernels == {}


UPDATES = ["add", "and", "or", "xor", "max", "min", "umax", "umin", "exch"]


@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_atomics_have_the_order_and_scope_asked_for(device: Device, sem: str, scope: str, needs_ptxas: None) -> None:
    wanted: list[str] = []

    def emit(f: Function) -> None:
        for type_ in (I32, I64):
            value = f.load(type_, f.parameters[0])
            for kind in UPDATES:
                found = atomics.operation(kind, f"i{type_.bits}", type_.bits, device.bf16)
                assert found is not None
                wanted.append(found)
                value = atomics.update(f, found, f.parameters[0], value, sem, scope)
            f.store(value, f.parameters[0])

    ptx = compiled(device, emit, GLOBAL_PTR)
    assert [ptx.count(f"atom.{sem}.{scope}.global.{each} ") for each in wanted] == [1] * len(wanted)


FLOATS = {"f16": I16, "bf16": I16, "f32": F32, "f64": F64}


@pytest.mark.parametrize("element", FLOATS)
def test_sums_of_floats_are_instructions_where_there_are_any(device: Device, element: str, needs_ptxas: None) -> None:
    type_ = FLOATS[element]
    found = atomics.operation("fadd", element, type_.bits, device.bf16)
    assert (found is None) == (element == "bf16" and not device.bf16)
    if found is None:
        return

    def emit(f: Function) -> None:
        value = f.load(type_, f.parameters[0])
        f.store(atomics.update(f, found, f.parameters[0], value, "acq_rel", "gpu"), f.parameters[0])

    compiled(device, emit, GLOBAL_PTR)


@pytest.mark.parametrize(("element", "count"), [("f16", 8), ("bf16", 8), ("f32", 4), ("f32", 2), ("f32", 1)])
def test_sums_of_neighbours_are_one_instruction(element: str, count: int, needs_ptxas: None) -> None:
    type_ = FLOATS[element]
    operation = atomics.operation("fadd", element, type_.bits, bf16=True)
    assert operation is not None

    def emit(f: Function) -> None:
        values = [constant(type_, number) for number in range(count)]
        atomics.update_run(f, operation, constant(I1, 1), f.parameters[0], values, "relaxed", "gpu")

    shape = f".v{count}" if count > 1 else ""
    found = compiled(DEVICES["90"], emit, GLOBAL_PTR)
    assert f"red.relaxed.gpu.global.add{'.noftz' * (element != 'f32')}{shape}.{element} " in found


@pytest.mark.parametrize("type_", [I16, I32, I64, F32, F64], ids=str)
def test_compare_and_swap(device: Device, type_: Type, needs_ptxas: None) -> None:
    def emit(f: Function) -> None:
        value = f.load(type_, f.parameters[0])
        new = constant(type_, 1)
        f.store(atomics.compare_and_swap(f, f.parameters[0], value, new, "acq_rel", "gpu"), f.parameters[0])

    assert f"atom.acq_rel.gpu.global.cas.b{type_.bits} " in compiled(device, emit, GLOBAL_PTR)


def test_printing(device: Device, needs_ptxas: None) -> None:
    def emit(f: Function) -> None:
        text = f.module.bytes_constant("form", b"%d %ld %f\n\0", printing.FORMAT_PTR)
        values = [f.load(type_, f.parameters[0]) for type_ in (I32, I64, F64)]
        printing.print_line(f, text, values)

    assert "vprintf" in compiled(device, emit, GLOBAL_PTR)


def test_vectors_have_no_letter() -> None:
    with pytest.raises(KeyError):
        accesses.ptx(Module().function("f", VOID, []), "", [vector("i32", 4)])
