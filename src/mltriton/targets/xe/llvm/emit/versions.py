"""Two versions of what a kernel does with matrices: by 2D block accesses, and without where the hardware takes none.

Level: intrinsic -> llvm. Whether the hardware takes a matrix depends on its base, sizes and strides, which are known
before the first access. All are asked once there; what follows is written twice. Guarantees: loops of the first version
have no checks; the second one is right for every matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mltriton.dialects import tt, ttig
from mltriton.ir.operation import Operation
from mltriton.ir.types import PointerType, TensorDescType, TensorType, block_of, byte_width
from mltriton.targets.llvm.types import I1, Value, constant
from mltriton.targets.xe.block_limits import Access, Block
from mltriton.targets.xe.llvm import block_io
from mltriton.targets.xe.llvm.emit.context import BlockPointer, Emitter

ACCESSES = (tt.Load, tt.Store, tt.DescriptorLoad, tt.DescriptorStore, ttig.Prefetch)


def emit(e: Emitter, ops: Sequence[Operation]) -> None:
    """Emit the operations of a kernel."""
    for number, op in enumerate(ops):
        if any(_accesses_block(inner) for inner in op.walk()):
            guards = dict.fromkeys(guard for each in ops for guard in _guards(e, each))
            _emit_versions(e, ops[number:], list(guards))
            return
        e.operation(op)


def _accesses_block(op: Operation) -> bool:
    if not isinstance(op, ACCESSES):
        return False
    type_ = op.operands[0].type
    return isinstance(type_, TensorDescType) or (isinstance(type_, PointerType) and block_of(type_) is not None)


def _emit_versions(e: Emitter, ops: Sequence[Operation], guards: Sequence[Value]) -> None:
    both = constant(I1, 1)
    for guard in guards:
        both = e.function.and_(guard, both)

    def version(holds: bool) -> Callable[[], Sequence[Value]]:
        def build() -> Sequence[Value]:
            e.surfaces = dict.fromkeys(guards, holds)
            for op in ops:
                e.operation(op)
            return []

        return build

    e.function.choose(both, version(holds=True), version(holds=False), "surfaces")


def _guards(e: Emitter, op: Operation) -> Iterator[Value]:
    """What must be asked of the matrices that an operation, or one inside it, describes."""
    for inner in op.walk():
        if isinstance(inner, tt.MakeTensorPtr | tt.MakeTensorDesc):
            values = (inner.base, *inner.shape, *inner.strides)
            if len(inner.shape) == 2 and all(e.ensure(value) for value in values):
                base, *rest = (e.get(value) for value in values)
                yield from _asked(e, BlockPointer(base, rest[:2], rest[2:], ()), inner)


def _asked(e: Emitter, pointer: BlockPointer, op: tt.MakeTensorPtr | tt.MakeTensorDesc) -> Iterator[Value]:
    size = byte_width(_block(op).element)
    transposed = pointer.strides[-1].literal != 1
    if transposed and pointer.strides[-2].literal != 1:
        return
    block = Block(Access.LOAD_TRANSPOSE, 4, 8, 16) if transposed else Block(Access.LOAD, size, 16, 1)
    guard = block_io.guard(e, pointer, size, block_io.Message(block, 1, 1, transposed))
    if guard.literal is None:
        yield guard


def _block(op: tt.MakeTensorPtr | tt.MakeTensorDesc) -> TensorType:
    type_ = op.result.type
    found = type_.block if isinstance(type_, TensorDescType) else block_of(type_)
    assert found is not None
    return found
