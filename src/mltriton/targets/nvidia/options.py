"""Options that NVIDIA's GPUs have. Level: user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mltriton.targets.options import TargetOptions, option


@dataclass(frozen=True)
class CudaOptions(TargetOptions):
    """`tensor_maps`: which programs let the GPU's engine (TMA) copy blocks of tensors that the launch describes: those
    with matrix products, where it is faster, all, or none. `enable_fp_fusion`: whether a sum with a product is rounded
    once (`fuse-multiply-add`), as upstream's compiler does unless it is told not to.
    """

    tensor_maps: str = option(
        "products",
        "which programs let an engine copy blocks of tensors that the launch describes",
        choices=("products", "all", "none"),
        ignorable=True,
    )

    enable_fp_fusion: bool = option(True, "whether sums with products are rounded once", ignorable=True)

    def attributes(self) -> Mapping[str, bool | int | str]:
        """What `hoist-descriptors` and `fuse-multiply-add` ask."""
        exact = {} if self.enable_fp_fusion else {"ttg.fp-fusion": False}
        return {"ttg.tensor-maps": self.tensor_maps, **exact}
