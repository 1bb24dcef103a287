"""Options that NVIDIA's GPUs have. Level: user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mltriton.targets.options import TargetOptions, option


@dataclass(frozen=True)
class CudaOptions(TargetOptions):
    """`tensor_maps`: which programs let the GPU's engine (TMA) copy blocks of tensors that the launch describes: those
    with matrix products, where it is faster, all, or none. `specialize_warps`: which programs have a warp of its own
    that starts the copies: those with loops that ask for it (`tl.range(warp_specialize=True)`) or where it is faster,
    all that can, or none. `enable_fp_fusion`: whether a sum with a product is rounded once (`fuse-multiply-add`), as
    upstream's compiler does unless it is told not to.
    """

    tensor_maps: str = option(
        "products",
        "which programs let an engine copy blocks of tensors that the launch describes",
        choices=("products", "all", "none"),
        ignorable=True,
    )

    specialize_warps: str = option(
        "auto",
        "which programs let a warp of their own start the copies that the others compute on",
        choices=("auto", "all", "none"),
        ignorable=True,
    )

    enable_fp_fusion: bool = option(True, "whether sums with products are rounded once", ignorable=True)

    def attributes(self) -> Mapping[str, bool | int | str]:
        """What `hoist-descriptors`, `specialize-warps` and `fuse-multiply-add` ask."""
        exact = {} if self.enable_fp_fusion else {"ttg.fp-fusion": False}
        return {"ttg.tensor-maps": self.tensor_maps, "ttg.specialize-warps": self.specialize_warps, **exact}

    def unconditional(self) -> CudaOptions:
        """Arrays that nothing can describe are copied by the program itself."""
        return replace(self, tensor_maps="none")
