"""What the emitter of lane programs asks of a GPU.

Level: intrinsic -> llvm. `Calls` is what a lane asks of its warp and of its program; a module with functions of these
names is one. A `Machine` says the rest, and has a default wherever plain LLVM IR will do. With a table of passes
(`TargetSpec`), rules for what the GPU alone has, and these two, a GPU has code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from mltriton.ir.module import Module as IRModule
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType
from mltriton.ir.types import Type as IRType
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import PTR, Type, Value
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.lanes import Form, plain_form


class Order(NamedTuple):
    """What an atomic update orders ("relaxed", "acquire", "release", "acq_rel"), and for whom it is one: the program
    ("cta"), the GPU ("gpu") or all and the host ("sys").
    """

    sem: str
    scope: str


class Calls(Protocol):
    """What a lane asks; numbers are i32."""

    def lane(self, f: Function) -> Value:
        """The number of this lane in its warp."""
        ...

    def warp(self, f: Function) -> Value:
        """The number of this warp in its program."""
        ...

    def program(self, f: Function, axis: int) -> Value:
        """A coordinate of this program."""
        ...

    def programs(self, f: Function, axis: int) -> Value:
        """A size of the grid."""
        ...

    def everywhere(self, f: Function, condition: Value) -> Value:
        """Whether an i1 holds in all lanes of the warp."""
        ...

    def shuffle(self, f: Function, value: Value, source: Value) -> Value:
        """The value, of any type of one element, that lane `source` has."""
        ...

    def shuffle_xor(self, f: Function, value: Value, mask: int) -> Value:
        """The value that the lane has whose number differs by the bits of `mask`."""
        ...

    def barrier(self, f: Function, *, of_warp: bool = False) -> None:
        """All warps of the program, or all lanes of the warp, wait here; what they wrote to shared memory before is
        seen after it.
        """
        ...

    def arrive(self, f: Function) -> None:
        """All warps of the program learn that this one has come here; no memory access is ordered."""
        ...

    def wait(self, f: Function) -> None:
        """Wait until all warps of the program have arrived."""
        ...


class Machine(ABC):
    """One GPU. `name` stands in errors; `shared_bytes` a program has at most; LLVM's vectors have up to
    `longest_vector` elements; the text of what is printed lies behind a `text_pointer`; `record_scope` is LLVM's text
    for the GPU and the host. `in_step`: no lane of a warp runs ahead of another, so that what an instruction writes all
    lanes see in the next.
    """

    calls: Calls
    longest_vector: int = 16
    text_pointer: Type = PTR
    record_scope: str = ""
    in_step: bool = False

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def shared_bytes(self) -> int: ...

    # The kernel

    @abstractmethod
    def kernel(
        self, module: Module, name: str, parameters: Sequence[tuple[str, Type]], warps: int, lanes: int
    ) -> Function:
        """The kernel's function, still without instructions; a program has so many warps of so many lanes."""

    def parameters(self, module: IRModule) -> list[tuple[str, Type]]:
        """Name and type of what a kernel takes besides its own parameters."""
        return []

    def shared_memory(self, module: Module, name: str, size: int) -> Value:
        """The address of `size` bytes that the warps of a program share."""
        return module.workgroup_memory(name, size)

    # Values

    def form_of(self, type_: TensorType) -> Form:
        """How the registers of a block make LLVM values."""
        return plain_form(type_)

    @abstractmethod
    def function(self, f: Function, name: str, *operands: Value) -> Value:
        """C's function of f32 or f64: `fmax` and `fmin`, which take the number where one operand is NaN."""

    def widen(self, f: Function, value: Value, type_: IRType) -> Value | None:
        """A narrow float, held as an integer, as f32 by an instruction; None where none takes so many elements."""
        return None

    def narrow(self, f: Function, value: Value, type_: IRType) -> Value | None:
        """f32 rounded to a narrow float by an instruction; None where none takes so many elements."""
        return None

    def reduced(self, f: Function, combination: type[Operation], value: Value) -> Value | None:
        """The values of all lanes of the warp combined, in every lane; None where it takes shuffles."""
        return None

    # Memory

    def caching(self, stores: bool, cache: str, evict: str) -> Any:
        """What the hints of an access ask of the caches; None for nothing."""
        return None

    def load(self, f: Function, type_: Type, pointer: Value, align: int, caching: Any) -> Value:
        """Read neighbours."""
        return f.load(type_, pointer, align)

    def store(self, f: Function, value: Value, pointer: Value, align: int, caching: Any) -> None:
        """Write neighbours."""
        f.store(value, pointer, align)

    def load_where(
        self, f: Function, mask: Value, element: Type, pointer: Value, others: Sequence[Value], align: int, caching: Any
    ) -> Sequence[Value] | None:
        """Read neighbours where an i1 holds, or else give those of `others`; None where it takes a branch."""
        return None

    def store_where(
        self, f: Function, mask: Value, values: Sequence[Value], pointer: Value, align: int, caching: Any
    ) -> bool:
        """Write neighbours where an i1 holds; whether it takes no branch."""
        return False

    @abstractmethod
    def update(
        self, f: Function, kind: str, element: IRType, pointer: Value, value: Value, order: Order
    ) -> Value | None:
        """An atomic update (`tt.atomic_rmw`'s `kind`) by one instruction: what was there before. None where it takes a
        loop of swaps.
        """

    def updates_runs(self, kind: str, element: IRType, order: Order) -> bool:
        """Whether one instruction updates neighbours of up to 16 bytes, if nobody takes what was there before."""
        return False

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
        """Such an update under a condition: of 1, 2, 4 or 8 neighbours, aligned as a whole."""
        raise NotImplementedError

    @abstractmethod
    def swap(self, f: Function, pointer: Value, expected: Value, new: Value, order: Order) -> Value:
        """Write an i32 or i64 where `expected` is; what was there before."""

    # For people

    @abstractmethod
    def print(self, f: Function, text: Value, values: Sequence[Value]) -> None:
        """C's printf. Floats are f64, integers i32 or i64."""
