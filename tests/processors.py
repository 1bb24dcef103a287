"""What tests may ask of this machine's processor: the instruction sets of x86 that it executes, and how exactly it
emulates Intel's GPUs.
"""

from mltriton.targets.cpu import features
from mltriton.targets.cpu.features import FEATURES

_ORDER = ("sse", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "amx", "amx-fp16")


def runnable() -> list[str]:
    """Those of the table, the smallest first."""
    host = features.host()
    flags = {flag[1:] for flag in host.attributes.split(",") if flag.startswith("+")}
    wanted = {name: {flag[1:] for flag in FEATURES[name].attributes.split(",") if flag} for name in _ORDER}
    return [name for name in _ORDER if host.is_x86 and wanted[name] <= flags]


RUNNABLE = tuple(f"cpu:{name}" for name in runnable())
# Powers of two in f32, an instruction of the GPU, are rough in Intel's runtime for CPUs without AVX-512: off by 7e-5.
ROUGH_POWERS = not features.host().avx512
WIDTHS = tuple(target for target in RUNNABLE if target in ("cpu:sse", "cpu:avx2", "cpu:avx512"))
NARROWER = WIDTHS[:-1]  # than the processor's own registers, which the target `cpu` takes
