"""NVIDIA's GPUs as data, by compute capability.

Level: data. Sources: CUDA C++ Programming Guide, technical specifications per compute capability; PTX ISA 8.7.
"""

from __future__ import annotations

from mltriton.errors import TargetError
from mltriton.records import NamedTuple

RESERVED_BYTES = 1024  # of shared memory that each program takes besides its own


class Device(NamedTuple):
    """One compute capability. `cpu` and `features` are LLVM's names of it, `arch` that of ptxas; `shared_bytes` what a
    program may have of shared memory, `all_shared_bytes` what a multiprocessor has. `fp8`: whether there are
    conversions and products of floats of 8 bits; `bf16`: whether there is arithmetic on bf16 besides products;
    `wide_f64`: whether products of f64 have the size of others'; `warp_groups`: whether four warps multiply together;
    `tensor_copies`: whether an engine copies blocks; `matrix_stores`: whether a warp stores matrices at once;
    `vector_sums`: whether an instruction adds to several neighbours in memory; `multiprocessors`: how many the GPU has
    that is usual in data centres, where there is one such.
    """

    name: str
    arch: str
    features: str
    shared_bytes: int
    all_shared_bytes: int
    fp8: bool
    bf16: bool
    wide_f64: bool
    warp_groups: bool = False
    tensor_copies: bool = False
    matrix_stores: bool = False
    vector_sums: bool = False
    registers: int = 255  # that a lane may have
    all_registers: int = 65536  # 32-bit ones of a multiprocessor, which all programs on it share
    max_warps: int = 32
    multiprocessors: int | None = None


DEVICES = {
    device.name: device
    for device in (
        Device(
            "80", "sm_80", "+ptx87", 163 * 1024, 164 * 1024, fp8=False, bf16=False, wide_f64=False, multiprocessors=108
        ),
        Device("89", "sm_89", "+ptx87", 99 * 1024, 100 * 1024, fp8=True, bf16=False, wide_f64=False),
        Device(
            *("90", "sm_90a", "+ptx87", 227 * 1024, 228 * 1024),
            **dict.fromkeys(
                ("fp8", "bf16", "wide_f64", "warp_groups", "tensor_copies", "matrix_stores", "vector_sums"), True
            ),
            multiprocessors=132,
        ),
    )
}


def device(name: str) -> Device:
    """The device of a variant. Raises `TargetError` for a compute capability that is not known."""
    found = DEVICES.get(name)
    if found is None:
        expected = ", ".join(f"cuda:{known}" for known in DEVICES)
        raise TargetError("no GPU of this compute capability is known", expected=expected, found=f"cuda:{name}")
    return found


def variant_here() -> str:
    """The variant whose code this machine's current GPU runs: its own, or an older one of its generation.

    Raises `DeviceError` where there is no GPU, `TargetError` for one of another generation.
    """
    from mltriton.targets.nvidia import driver  # A launch from the cache needs none of it.

    major, minor = driver.device(driver.current_index()).capability
    fitting = [name for name in DEVICES if int(name) // 10 == major and int(name) % 10 <= minor]
    return device(max(fitting, default=f"{major}{minor}")).name
