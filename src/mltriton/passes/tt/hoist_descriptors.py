"""hoist-descriptors: the launch describes the tensors whose blocks an engine copies.

Level: tt. Takes any program and changes it in place; does nothing for a target without such an engine
(`TargetSpec.tensor_copies`) and where the launch must do without (`ttg.tensor-maps` is "none"). Loads and stores
through descriptors, block pointers and regular blocks of pointers that `analysis/tensor_maps.py` understands go through
a `ttng.tensor_map` at the beginning of the function; all others stay as they are. Guarantees: the same effects wherever
the launch can describe the tensors; it can where bases and strides are aligned, sizes positive and strides not
negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.analysis.tensor_maps import Access, Tensor, TensorAccess, TensorMaps, accesses_of
from mltriton.dialects import tt, ttng
from mltriton.ir.attributes import StringAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, I64, TensorDescType, TensorType
from mltriton.passes.any.dce import DeadCode
from mltriton.passes.tt.block_alternatives import alternatives
from mltriton.passes.tt.normalize_block_pointers import NormalizeBlockPointers
from mltriton.targets.base import TensorCopies
from mltriton.targets.registry import spec_of

_TURNED = (1, 0)


class HoistDescriptors(Pass):
    """Let the launch make descriptors."""

    name = "hoist-descriptors"

    def run(self, module: Module) -> Module:
        limits = spec_of(module).tensor_copies
        if limits is None or is_warp_level(module) or not are_allowed(module):
            return module
        module = NormalizeBlockPointers().run(module)
        for function in module.body.block.ops:
            if isinstance(function, tt.Func):
                _hoist(function, limits_in(module, limits))
        return DeadCode().run(module)


def _asked(module: Module) -> str:
    mark = module.attributes.get("ttg.tensor-maps")
    return mark.value if isinstance(mark, StringAttr) else "products"


def are_allowed(module: Module) -> bool:
    """Whether the launch may describe tensors."""
    return _asked(module) != "none"


def limits_in(module: Module, limits: TensorCopies) -> TensorCopies:
    """What the engine is used for in a program."""
    return limits._replace(beside_products=_asked(module) != "all")


def _hoist(function: tt.Func, limits: TensorCopies) -> None:
    added = alternatives(function, limits)
    judge = TensorMaps(function, limits, added)
    judged = [(op, judge.of(op)) for op in accesses_of(function)]
    entry, maps = Builder().before(function.body.block.ops[0]), dict[Tensor, Value]()
    for op, access in judged:
        original = added.get(op)
        if isinstance(access, TensorAccess):
            if original is not None:
                original.replace_by(op.results)
            if access.tensor not in maps:
                with entry.at(op.loc):
                    maps[access.tensor] = _map(entry, access.tensor)
            _through(op, access, maps[access.tensor])
        elif original is not None:
            op.erase()


def _map(builder: Builder, tensor: Tensor) -> Value:
    base = tensor.base
    if not tensor.shift.is_zero:
        base = builder.emit(tt.AddPtr, base, tensor.shift.emit(builder, I64))
    numbers = [_scalars(builder, each) for each in (tensor.sizes, tensor.strides, tensor.positive)]
    return builder.emit(ttng.TensorMap, base, *numbers, tensor.apart, result_types=[TensorDescType(tensor.block)])


def _scalars(builder: Builder, numbers: Sequence[Polynomial]) -> list[Value]:
    return [number.emit(builder, I64) for number in numbers]


def _through(op: Access, access: TensorAccess, described: Value) -> None:
    """Access a block by a descriptor in the place of an operation."""
    builder = Builder().before(op)
    indices = [index.emit(builder, I32) for index in access.indices]
    if isinstance(op, tt.Store | tt.DescriptorStore):
        value = builder.emit(tt.Trans, op.value, order=_TURNED) if access.turned else op.value
        kind = op.kind if isinstance(op, tt.DescriptorReduce) else None
        if kind is None:
            builder.create(tt.DescriptorStore, described, value, indices)
        else:
            builder.create(tt.DescriptorReduce, described, value, indices, kind=kind)
    else:
        block = cast(TensorType, op.result.type)
        block = block.with_shape(block.shape[::-1]) if access.turned else block
        loaded = builder.emit(
            tt.DescriptorLoad, described, indices, result_types=[block], cache=op.cache, evict=op.evict
        )
        loaded.hint = op.result.hint
        op.result.replace_by(builder.emit(tt.Trans, loaded, order=_TURNED) if access.turned else loaded)
    op.erase()
