"""NVIDIA's GPUs as the emitter of lane programs sees them: NVVM's intrinsics and PTX.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from mltriton.dialects import arith
from mltriton.ir.module import Module as IRModule
from mltriton.ir.operation import Operation
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, FloatType, TensorType
from mltriton.ir.types import Type as IRType
from mltriton.layouts.encodings import DotOperandEncoding, MatrixEncoding
from mltriton.targets.llvm.types import F32 as FLOAT
from mltriton.targets.llvm.types import I16, I32, PTR, VOID, Type, Value, poison
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.nvidia import accesses, atomics, calls, conversions, printing, tensor_maps
from mltriton.targets.nvidia.accesses import NO_HINTS, Hints
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.nvidia.devices import Device
from mltriton.targets.registry import TAKES_TURNS
from mltriton.targets.simt.lanes import Form, plain_form
from mltriton.targets.simt.machine import Calls, Machine, Order

SHARED_ALIGNMENT = 1024  # what a swizzle repeats after
# Combinations of i32 that a warp does at once.
_REDUCTIONS: dict[type[Operation], str] = {
    arith.AddI: "add.s32",
    arith.MaxSI: "max.s32",
    arith.MinSI: "min.s32",
    arith.MaxUI: "max.u32",
    arith.MinUI: "min.u32",
    arith.AndI: "and.b32",
    arith.OrI: "or.b32",
    arith.XOrI: "xor.b32",
}
_PACKED = (8, 16)  # bits of elements that share words
_EXTREMA = {"fmax": "llvm.maxnum", "fmin": "llvm.minnum"}
_MAP = f'byval([{tensor_maps.MAP_BYTES} x i8]) align {tensor_maps.ALIGNMENT} "nvvm.grid_constant"'


@dataclass(frozen=True)
class NvidiaMachine(Machine):
    """One compute capability, the tensor maps that a kernel takes, whether its warps hand over registers, and how many
    a lane may have (0: as ptxas finds best).
    """

    device: Device
    maps: tuple[object, ...] = ()
    hands_over: bool = False
    most_registers: int = 0
    calls: Calls = calls
    text_pointer: Type = printing.FORMAT_PTR

    @property
    def name(self) -> str:
        """In errors."""
        return f"cuda:{self.device.name}"

    @property
    def shared_bytes(self) -> int:
        """Of a program."""
        return self.device.shared_bytes

    def kernel(
        self, module: Module, name: str, parameters: Sequence[tuple[str, Type]], warps: int, lanes: int
    ) -> Function:
        """`ptx_kernel`. Where warps hand over registers ptxas must know that one program on a multiprocessor is enough;
        it would take more registers for others, too, which then had fewer programs there.
        """
        alone = '"nvvm.minctasm"="1" ' if self.hands_over else ""
        limit = f'"nvvm.maxnreg"="{self.most_registers}" ' if self.most_registers else ""
        extra = f'"nvvm.maxntid"="{warps * lanes}" {alone}{limit}'
        return module.function(name, VOID, parameters, linkage="ptx_kernel", extra=extra)

    def parameters(self, module: IRModule) -> list[tuple[str, Type]]:
        """The tensor maps, and how many programs along x a launch asks for where fewer run: name, with attributes, and
        type of each.
        """
        maps = [(f"{_MAP} map{number}", PTR) for number, _ in enumerate(self.maps)]
        return [*maps, *[("grid", I32)] * (TAKES_TURNS in module.attributes)]

    def shared_memory(self, module: Module, name: str, size: int) -> Value:
        """What the launch provides: only so there is all of it."""
        return module.launched_memory(name, SHARED_ALIGNMENT)

    # Values

    def form_of(self, type_: TensorType) -> Form:
        """Left operands of products of four warps are their words of 32 bits, which loops carry as such; each register
        of other blocks, and of their masks, is a value.
        """
        plain, encoding = plain_form(type_), type_.encoding
        parent = encoding.parent if isinstance(encoding, DotOperandEncoding) and encoding.op_idx == 0 else None
        if not isinstance(parent, MatrixEncoding) or parent.together == 1 or plain.element.bits not in _PACKED:
            return plain
        return Form(I32.bits // plain.element.bits, plain.element, I32)

    def function(self, f: Function, name: str, *operands: Value) -> Value:
        """An instruction."""
        return f.intrinsic(_EXTREMA[name], operands[0].type, *operands)

    def narrow(self, f: Function, value: Value, type_: IRType) -> Value | None:
        """To bf16, and where there are instructions for them to floats of 8 bits."""
        if type_ is BF16:
            return conversions.to_bf16(f, value)
        name = self._name(type_)
        return None if name is None else conversions.to_fp8(f, value, name)

    def widen(self, f: Function, value: Value, type_: IRType) -> Value | None:
        """Floats of 8 bits."""
        name = self._name(type_)
        if name is None:
            return None
        half = f.bitcast(conversions.from_fp8(f, value, name), value.type.with_element("half"))
        return f.cast("fpext", half, FLOAT)

    def _name(self, type_: IRType) -> str | None:
        """The name of a float of 8 bits that instructions convert."""
        return type_.name if self.device.fp8 and type_ in (F8E4M3, F8E5M2) and isinstance(type_, FloatType) else None

    def reduced(self, f: Function, combination: type[Operation], value: Value) -> Value | None:
        """Of i32 by one instruction."""
        name = _REDUCTIONS.get(combination)
        if name is None or value.type != I32:
            return None
        (made,) = ptx(f, f"redux.sync.{name} $0, $1, {calls.EVERY_LANE};", [I32], value)
        return made

    # Memory

    def caching(self, stores: bool, cache: str, evict: str) -> Hints | None:
        """PTX's operator, or else its priority."""
        return accesses.hints_of(cache, evict)

    def load(self, f: Function, type_: Type, pointer: Value, align: int, caching: Hints | None) -> Value:
        """Read neighbours."""
        if caching is None and type_.scalar == I16 and type_.lanes % 2 == 0 and align >= I32.bytes:
            words = f.load(I32.with_lanes(type_.lanes // 2), pointer, align)
            each = (f.extract(words, number) for number in range(type_.lanes // 2))
            return f.joined([part for word in each for part in accesses.halves_of(f, word)])
        if caching is None:
            return f.load(type_, pointer, align)
        others = [poison(type_.scalar)] * type_.lanes
        made = self.load_where(f, f.true(), type_.scalar, pointer, others, align, caching)
        return f.load(type_, pointer, align) if made is None else f.joined(made)

    def store(self, f: Function, value: Value, pointer: Value, align: int, caching: Hints | None) -> None:
        """Write neighbours."""
        parts = [f.extract(value, number) for number in range(value.type.lanes)]
        if caching is None or not self.store_where(f, f.true(), parts, pointer, align, caching):
            f.store(value, pointer, align)

    def load_where(
        self,
        f: Function,
        mask: Value,
        element: Type,
        pointer: Value,
        others: Sequence[Value],
        align: int,
        caching: Hints | None,
    ) -> Sequence[Value] | None:
        """One instruction under a condition."""
        shape = accesses.shape_of(element, len(others), align)
        hints = caching or NO_HINTS
        return None if shape is None else accesses.load(f, element, pointer, mask, others, shape, hints)

    def store_where(
        self, f: Function, mask: Value, values: Sequence[Value], pointer: Value, align: int, caching: Hints | None
    ) -> bool:
        """One instruction under a condition."""
        shape = accesses.shape_of(values[0].type, len(values), align)
        if shape is None:
            return False
        accesses.store(f, pointer, mask, values, shape, caching or NO_HINTS)
        return True

    def update(
        self, f: Function, kind: str, element: IRType, pointer: Value, value: Value, order: Order
    ) -> Value | None:
        """PTX: LLVM leaves out what an update orders."""
        name = element.name if isinstance(element, FloatType) else f"i{value.type.bits}"
        operation = atomics.operation(kind, name, value.type.bits, self.device.bf16)
        return None if operation is None else atomics.update(f, operation, pointer, value, *order)

    def updates_runs(self, kind: str, element: IRType, order: Order) -> bool:
        """Sums of floats that do not wait for what others have written."""
        sums = kind == "fadd" and isinstance(element, FloatType) and element.name in ("f16", "bf16", "f32")
        return self.device.vector_sums and sums and order.sem in ("relaxed", "release")

    def update_run(
        self,
        f: Function,
        kind: str,
        element: IRType,
        mask: Value,
        pointer: Value,
        values: Sequence[Value],
        order: Order,
    ) -> None:
        """PTX."""
        operation = atomics.operation(kind, cast(FloatType, element).name, values[0].type.bits, self.device.bf16)
        atomics.update_run(f, cast(str, operation), mask, pointer, values, *order)

    def swap(self, f: Function, pointer: Value, expected: Value, new: Value, order: Order) -> Value:
        """PTX."""
        return atomics.compare_and_swap(f, pointer, expected, new, *order)

    def print(self, f: Function, text: Value, values: Sequence[Value]) -> None:
        """The driver's vprintf."""
        printing.print_line(f, text, values)
