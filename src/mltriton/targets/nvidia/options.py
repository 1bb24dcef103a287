"""Options that NVIDIA's GPUs have. Level: user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mltriton.errors import OptionError
from mltriton.targets.options import TargetOptions, option

MOST_REGISTERS = 255  # of a lane


@dataclass(frozen=True)
class CudaOptions(TargetOptions):
    """`tensor_maps`: which programs let the GPU's engine (TMA) copy blocks of tensors that the launch describes: those
    with matrix products, where it is faster, all, or none. `specialize_warps`: which programs have a warp of its own
    that starts the copies: those with loops that ask for it (`tl.range(warp_specialize=True)`) or where it is faster,
    all that can, or none. `enable_fp_fusion`: whether a sum with a product is rounded once (`fuse-multiply-add`), as
    upstream's compiler does unless it is told not to. `maxnreg`: registers that a lane may have. `launch_pdl`: the
    kernel may begin while the one before it on the stream ends (programmatic dependent launch; `tl.extra.cuda.gdc_wait`
    waits for that). `launch_cooperative_grid`: all programs run at the same time, or the launch is an error.
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

    maxnreg: int | None = option(None, "registers that a lane may have", ignorable=True)

    launch_pdl: bool = option(False, "whether it may begin while the kernel before it ends", ignorable=True)

    launch_cooperative_grid: bool = option(False, "whether all programs run at the same time")

    def __post_init__(self) -> None:
        if self.maxnreg is not None and not (type(self.maxnreg) is int and 1 <= self.maxnreg <= MOST_REGISTERS):
            raise OptionError("maxnreg", expected=f"1 to {MOST_REGISTERS}, or None", found=repr(self.maxnreg))

    def attributes(self) -> Mapping[str, bool | int | str]:
        """What `hoist-descriptors`, `specialize-warps` and `fuse-multiply-add` ask, and the target of the kernel."""
        asked: dict[str, bool | int | str] = {"ttg.tensor-maps": self.tensor_maps}
        asked["ttg.specialize-warps"] = self.specialize_warps
        if not self.enable_fp_fusion:
            asked["ttg.fp-fusion"] = False
        if self.maxnreg is not None:
            asked["ttg.maxnreg"] = self.maxnreg
        if self.launch_pdl:
            asked["ttg.launch-pdl"] = True
        if self.launch_cooperative_grid:
            asked["ttg.launch-cooperative-grid"] = True
        return asked

    def unconditional(self) -> CudaOptions:
        """Arrays that nothing can describe are copied by the program itself."""
        return replace(self, tensor_maps="none")

    def in_one_round(self) -> CudaOptions:
        """Programs that copy for themselves: of those with a producer one has a multiprocessor to itself."""
        return replace(self, specialize_warps="none")
