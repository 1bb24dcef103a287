"""A SPIR-V module for Intel's vector compiler under construction: types, constants, imported functions, one kernel.

Level: binary. Guarantees: types and constants are written once and before their use, whatever the width of a vector;
each function has the decoration that says that one work item is a whole warp.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import CONSTANT_PTR, I8, I32, VOID, Type, Value, bits_of
from mltriton.targets.xe.spirv.words import MAGIC, Instruction, SpirvModule, words_of

_VERSION = 0x00010400
# Addresses, Linkage, Kernel, Vector16, Float16, Float64, Int64, Int16, Int8, VectorComputeINTEL, VectorAnyINTEL.
_CAPABILITIES = (4, 5, 6, 7, 9, 10, 11, 22, 39, 5617, 5619)
_EXTENSION = "SPV_INTEL_vector_compute"
_VECTOR_FUNCTION = 5626  # decoration of each function
_LINKAGE, _IMPORT = 41, 1
_CONSTANT = 22  # decoration of variables
_LOCAL_SIZE, _SHARED_SIZE = 17, 5618  # execution modes
_STORAGE = {"ptr": 7, "ptr addrspace(1)": 5, "ptr addrspace(2)": 0, "ptr addrspace(3)": 4}  # by LLVM's address space
_KERNEL_MODEL, _PHYSICAL64, _OPENCL = 6, 2, 2


class Import(NamedTuple):
    """A function that Intel's compiler knows."""

    name: str
    result: Type
    parameters: tuple[Type, ...]


class Sections:
    """What stands before the kernel's body; ids are numbers from 1 on."""

    def __init__(self) -> None:
        self.bound = 1
        self.library = self.fresh()
        self._known: dict[object, int] = {}
        self._types: list[Instruction] = []
        self._imports: dict[Import, int] = {}
        self._decorations: list[Instruction] = []

    def fresh(self) -> int:
        """A new id."""
        self.bound += 1
        return self.bound - 1

    def type(self, type_: Type) -> int:
        """The id of a type."""
        if type_.is_vector:
            return self._declared(23, self.type(type_.scalar), type_.lanes)
        if type_ == VOID:
            return self._declared(19)
        if type_.element in _STORAGE:
            return self._declared(32, _STORAGE[type_.element], self._declared(21, 8, 0))
        if type_.bits == 1:
            return self._declared(20)
        return self._declared(22, type_.bits) if type_.is_float else self._declared(21, type_.bits, 0)

    def pointer(self, type_: Type) -> int:
        """The id of the type of a variable's address."""
        return self._declared(32, _STORAGE["ptr"], self.type(type_))

    def function_type(self, result: Type, parameters: Sequence[Type]) -> int:
        """The id of a function's type."""
        return self._declared(33, self.type(result), *map(self.type, parameters))

    def constant(self, value: Value) -> int:
        """The id of a constant."""
        type_, numbers = value.type, value.elements or (value.literal,)
        assert value.text == "poison" or None not in numbers, f"{value} is no constant"
        if numbers == (None,):
            return self._made(1, self.type(type_))
        bits = tuple(bits_of(type_, number) for number in numbers if number is not None)
        if type_.is_vector and bits == (0,):
            return self._made(46, self.type(type_))
        if type_.is_vector:
            each = bits if value.elements else bits * type_.lanes
            return self._made(44, self.type(type_), *(self._scalar(type_.scalar, one) for one in each))
        return self._scalar(type_, *bits)

    def _scalar(self, type_: Type, bits: int) -> int:
        if type_.bits == 1:
            return self._made(41 if bits else 42, self.type(type_))
        return self._made(43, self.type(type_), *[bits & 0xFFFFFFFF, bits >> 32][: max(1, type_.bits // 32)])

    def text(self, data: bytes) -> int:
        """The id of a variable that holds a text for printf; its type is a pointer to an array."""
        length = self._scalar(I32, len(data))
        array = self._declared(28, self.type(I8), length)
        held = self._made(44, array, *(self._scalar(I8, byte) for byte in data))
        storage = _STORAGE[CONSTANT_PTR.element]
        made = self._made(59, self._declared(32, storage, array), storage, held)
        self._decorations.append(Instruction(71, (made, _CONSTANT)))
        return made

    def function(self, function: Import) -> int:
        """The id of an imported function."""
        if function not in self._imports:
            self._imports[function] = self.fresh()
        return self._imports[function]

    def finished(self, name: str, kernel: int, body: Sequence[Instruction], local: int, shared: int) -> SpirvModule:
        """The module around a kernel for so many warps, which share so many bytes."""
        imported = list(self._imports)
        declared = [part for each in imported for part in self._declaration(each)]
        modes = [Instruction(16, (kernel, _LOCAL_SIZE, local, 1, 1))]
        modes += [Instruction(16, (kernel, _SHARED_SIZE, shared))] if shared else []
        decorations = [
            Instruction(71, (self._imports[each], _LINKAGE, *words_of(each.name), _IMPORT)) for each in imported
        ]
        decorations += [Instruction(71, (each, _VECTOR_FUNCTION)) for each in (*self._imports.values(), kernel)]
        instructions = (
            *(Instruction(17, (number,)) for number in _CAPABILITIES),
            Instruction(10, words_of(_EXTENSION)),
            Instruction(11, (self.library, *words_of("OpenCL.std"))),
            Instruction(14, (_PHYSICAL64, _OPENCL)),
            Instruction(15, (_KERNEL_MODEL, kernel, *words_of(name))),
            *modes,
            *(Instruction(5, (self._imports[each], *words_of(each.name))) for each in imported),
            *decorations,
            *self._decorations,
            *self._types,
            *declared,
            *body,
        )
        return SpirvModule((MAGIC, _VERSION, 0, self.bound, 0), instructions)

    def _declaration(self, function: Import) -> list[Instruction]:
        result, whole = self.type(function.result), self.function_type(function.result, function.parameters)
        parameters = [Instruction(55, (self.type(type_), self.fresh())) for type_ in function.parameters]
        return [Instruction(54, (result, self._imports[function], 0, whole)), *parameters, Instruction(56, ())]

    def _declared(self, opcode: int, *operands: int) -> int:
        key = (opcode, operands)
        if key not in self._known:
            self._known[key] = self.fresh()
            self._types.append(Instruction(opcode, (self._known[key], *operands)))
        return self._known[key]

    def _made(self, opcode: int, type_: int, *operands: int) -> int:
        key = (opcode, type_, operands)
        if key not in self._known:
            self._known[key] = self.fresh()
            self._types.append(Instruction(opcode, (type_, self._known[key], *operands)))
        return self._known[key]
