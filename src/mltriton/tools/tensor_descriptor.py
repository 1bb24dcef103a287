"""Tensor descriptors made on the host: `TensorDescriptor`, an argument of a launch.

Level: runtime. Takes an array (numpy, torch, any object with a dtype and `data_ptr()`) with the shape and strides of a
tensor in it, in elements. Guarantees the rules that `tl.make_tensor_descriptor` has too (`DescriptorError`). The fields
may be given other values later, a block shape by a `Config`'s `pre_hook` say: a launch takes them as they are then.
The kernel gets a `tl.tensor_descriptor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mltriton.errors import DescriptorError, calling_location
from mltriton.kernels.arrays import item_size, strides_of
from mltriton.runtime.alignment import ALIGNMENT
from mltriton.runtime.specialization import address, dtype_name, is_array

MAX_RANK = 5
PADDINGS = ("zero", "nan")


class TensorDescriptor:
    """The tensor at the start of `base`, read and written in blocks of `block_shape`.

    1 to 5 dimensions; the base and all strides but the last are multiples of 16 bytes, the last stride is 1. What a
    kernel reads outside of `shape` is the padding: "zero", or "nan" for floats.
    """

    def __init__(
        self,
        base: Any,
        shape: Sequence[int],
        strides: Sequence[int],
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> None:
        self.base = base
        self.shape = shape
        self.strides = strides
        self.block_shape = block_shape
        self.padding = padding
        self.round_f32_to_tf32 = round_f32_to_tf32
        self.check()

    def __repr__(self) -> str:
        sizes = f"{tuple(self.shape)}, strides {tuple(self.strides)}, blocks {tuple(self.block_shape)}"
        return f"<descriptor of {self.base.dtype} {sizes}>"

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """The descriptor of a whole array."""
        if not is_array(tensor):
            raise DescriptorError(
                "a descriptor needs an array",
                expected="a numpy array or a torch tensor",
                found=type(tensor).__name__,
                location=calling_location(),
            )
        shape = tuple(int(size) for size in tensor.shape)
        return TensorDescriptor(tensor, shape, _strides(tensor), block_shape, padding, round_f32_to_tf32)

    def check(self) -> None:
        """Raise `DescriptorError` for the first rule that the fields break."""
        for is_broken, message, expected, found in self._rules():
            if is_broken:
                raise DescriptorError(message, expected=expected, found=found, location=calling_location())

    def _rules(self) -> Iterator[tuple[bool, str, str | None, str]]:
        """Whether a rule is broken, what it says, and what it expected and found; each may rely on those before."""
        base, rank = self.base, len(self.shape)
        yield not is_array(base), "a descriptor needs an array", "a numpy array or a torch tensor", type(base).__name__
        yield not 1 <= rank <= MAX_RANK, "a descriptor has 1 to 5 dimensions", f"1 to {MAX_RANK}", str(rank)
        for name in ("strides", "block_shape"):
            items = getattr(self, name)
            yield len(items) != rank, f"shape and {name} have different lengths", str(rank), str(len(items))
        for size in self.block_shape:
            yield size < 1 or size & (size - 1) != 0, "a block's sizes are powers of two", None, f"{self.block_shape}"
        yield min(self.shape) < 1, "the sizes of a descriptor must be positive", None, f"{tuple(self.shape)}"
        last, bytes_each = self.strides[-1], _bytes_each(base)
        yield last != 1, "the last stride of a descriptor must be 1", "1", str(last)
        yield address(base) % ALIGNMENT != 0, "the base of a descriptor must be 16-byte aligned", None, "it is not"
        for step in self.strides[:-1]:
            yield (
                step * bytes_each % ALIGNMENT != 0,
                "the strides of a descriptor must be multiples of 16 bytes",
                f"a multiple of {ALIGNMENT // bytes_each} elements",
                str(step),
            )
        yield self.padding not in PADDINGS, "unknown padding of a descriptor", " or ".join(PADDINGS), f"{self.padding}"
        name = dtype_name("base", base)
        yield self.padding == "nan" and "f" not in name, "padding 'nan' needs floats", "a float dtype", name
        yield self.round_f32_to_tf32, "no target rounds what a descriptor loads to tf32", "False", "True"


def _strides(array: Any) -> tuple[int, ...]:
    """Strides in elements; of an array that is neither numpy's nor torch's what its `stride()` says."""
    return tuple(int(step) for step in (array.stride() if hasattr(array, "stride") else strides_of(array)))


def _bytes_each(array: Any) -> int:
    return array.element_size() if hasattr(array, "element_size") else item_size(array)
