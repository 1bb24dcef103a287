"""Intel's OpenCL runtime for CPUs as pip installs it: finding it, and its log of a build that failed.

Level: runtime. The wheel `intel-opencl-rt` describes itself to OpenCL by a path of the machine on which it was made, so
that nobody finds it; `register` writes a description with the right one. SYCL's Python bindings do not say why a build
fails; `build_log` builds again through OpenCL's own functions and asks.
"""

from __future__ import annotations

import ctypes
import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from mltriton.runtime import config, private_files

_VENDORS = "OCL_ICD_VENDORS"  # the folder in which OpenCL's loader looks for runtimes
_LIBRARY = "libintelocl.so"

_DEVICE_TYPE_CPU = 1 << 1
_BUILD_LOG = 0x1183


def library() -> Path | None:
    """The runtime's library, where the wheel is installed."""
    try:
        files = distribution("intel-opencl-rt").files or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).resolve() for file in files if file.name == _LIBRARY), None)


def register() -> None:
    """Tell OpenCL's loader of the runtime; to be called before the loader is. The user's own choice stands."""
    found = library()
    if found is None or _VENDORS in os.environ:
        return
    folder = _vendors_folder()
    description = folder / "intel-cpu.icd"
    text = f"{found}\n"
    if not description.exists() or description.read_text(encoding="utf-8") != text:
        private_files.write(description, text.encode())
    os.environ[_VENDORS] = str(folder)


def _vendors_folder() -> Path:
    """A folder that nobody else can write to: code is loaded from where its files say."""
    try:
        cache = Path(config.cache_dir())
        for folder in (cache, cache / "opencl-vendors"):
            private_files.make_folder(folder)
    except (OSError, config.NoHomeError):
        return private_files.folder_for_temporaries("mltriton-opencl-vendors")
    return cache / "opencl-vendors"


def build_log(image: bytes) -> str:
    """What the runtime says of building a SPIR-V module; empty where it says nothing."""
    found = library()
    if found is None:
        return ""
    cl = ctypes.CDLL(str(found))
    for name in ("clCreateContext", "clCreateProgramWithIL"):
        getattr(cl, name).restype = ctypes.c_void_p
    platform, device, status = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int32()
    if cl.clGetPlatformIDs(1, ctypes.byref(platform), None) or cl.clGetDeviceIDs(
        platform, ctypes.c_uint64(_DEVICE_TYPE_CPU), 1, ctypes.byref(device), None
    ):
        return ""
    context = ctypes.c_void_p(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(status)))
    size = ctypes.c_size_t(len(image))
    program = ctypes.c_void_p(cl.clCreateProgramWithIL(context, image, size, ctypes.byref(status)))
    if status.value or not program:
        return f"the module is no SPIR-V that it takes (status {status.value})"
    cl.clBuildProgram(program, 1, ctypes.byref(device), None, None, None)
    length = ctypes.c_size_t()
    cl.clGetProgramBuildInfo(program, device, _BUILD_LOG, ctypes.c_size_t(0), None, ctypes.byref(length))
    text = ctypes.create_string_buffer(length.value or 1)
    cl.clGetProgramBuildInfo(program, device, _BUILD_LOG, ctypes.c_size_t(length.value), text, None)
    cl.clReleaseProgram(program)
    cl.clReleaseContext(context)
    return text.value.decode(errors="replace").strip()
