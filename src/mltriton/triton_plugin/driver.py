"""The driver of the backend `cpu` of the real Triton: the device, and launches.

Level: runtime. Imported by upstream when it looks for backends. Guarantees: active only where no other backend is, or
where `TRITON_DEFAULT_BACKEND=cpu` asks for it, so that hosts with a GPU stay as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    DriverBase: Any = object
else:
    from triton.backends.driver import DriverBase


class Utils:
    """What upstream asks of the device."""

    def get_device_properties(self, device: int | None = 0) -> dict[str, Any]:
        """Sizes of the device, as `mltriton.runtime.driver` has them."""
        from mltriton.runtime.driver import Driver  # Upstream loads the plug-in early.

        return Driver().utils.get_device_properties(device)

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, Any, None, int, int]:
        """The kernel in this process, twice; registers (not counted) and spills; how many threads it may have."""
        from mltriton.compiler.text import compile_text  # Upstream loads the plug-in early.

        known = json.loads(binary)
        kernel = compile_text(known["text"], known["options"])
        kernel._init_handles()  # pyright: ignore[reportPrivateUsage] - upstream's name
        return kernel, kernel, None, 0, 1 << 20

    def unload_module(self, module: Any) -> None:
        """Nothing: the process keeps what it loaded."""


def _signed(argument: Any, kind: str = "") -> Any:
    """The same bits as signed integers: upstream's programs do not tell the sign of what they are given."""
    if isinstance(argument, int):
        bits = int(kind[1:])
        return argument - (1 << bits) if argument >> (bits - 1) else argument
    name = str(argument.dtype).rpartition(".")[2]
    return argument.view(getattr(import_module("torch"), name[1:])) if name.startswith("uint") else argument


class Launcher:
    """What launches a kernel: takes x, y, z, stream, function, metadata, launch metadata, two hooks, the arguments."""

    def __init__(self, source: Any, metadata: Any) -> None:
        names = list(source.signature)
        self._constants = frozenset(
            (names.index(key),) if isinstance(key, str) else tuple(key) for key in source.constants
        )
        self._kinds = list(source.signature.values())

    def __call__(self, x: int, y: int, z: int, stream: int, function: Any, *rest: Any) -> None:
        told, arguments = rest[:4], rest[4:]
        if x and y and z:  # Upstream launches nothing where there are no programs.
            flat = self._parts(arguments, self._kinds, ())
            function.run(x, y, z, stream, function, *told, *flat)

    def _parts(self, arguments: Any, kinds: Any, path: tuple[int, ...]) -> Iterator[Any]:
        """The arguments of the compiled function: no constants, tuples taken apart."""
        for position, (argument, kind) in enumerate(zip(arguments, kinds, strict=True)):
            place = (*path, position)
            if kind == "constexpr" or place in self._constants:
                continue
            if isinstance(kind, tuple | list):
                yield from self._parts(argument, cast("tuple[Any, ...]", kind), place)
            elif kind.startswith("tensordesc"):
                yield from (_signed(argument.base), *argument.shape, *argument.strides)
            else:
                yield _signed(argument, kind) if kind.startswith(("*u", "u")) and kind != "u1" else argument


class CPUDriver(DriverBase):
    """This machine's CPU."""

    def __init__(self) -> None:
        self.utils = Utils()
        self.launcher_cls = Launcher

    @staticmethod
    def is_active() -> bool:
        """Whether kernels run here unless a program says otherwise."""
        asked = os.environ.get("TRITON_DEFAULT_BACKEND")
        if asked:
            return asked == "cpu"
        others = import_module("triton.backends").backends.values()
        return not any(backend.driver.is_active() for backend in others if backend.driver is not CPUDriver)

    def map_python_to_cpp_type(self, ty: str) -> str:
        """None: no C is written."""
        return ty

    def get_current_target(self) -> Any:
        """What kernels are compiled for."""
        from mltriton.runtime.driver import Driver  # Upstream loads the plug-in early.

        known = Driver().get_current_target()
        return import_module("triton.backends.compiler").GPUTarget(known.backend, known.arch, known.warp_size)

    def get_active_torch_device(self) -> Any:
        """The torch device whose tensors kernels take."""
        return import_module("torch").device("cpu")

    def get_device_interface(self) -> Any:
        """torch's module for the device."""
        return import_module("torch").cpu

    def get_benchmarker(self) -> Callable[..., Any]:
        """What measures launches."""
        from mltriton.testing import do_bench  # Upstream loads the plug-in early.

        return do_bench

    def get_current_device(self) -> int:
        """The number of the device: there is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Choose the only device."""

    def get_current_stream(self, device: int | None = 0) -> int:
        """The stream of launches: a launch on the CPU has run when it returns."""
        return 0

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory that is larger than the caches."""
        return import_module("torch").empty(256 << 20, dtype=import_module("torch").uint8)

    def clear_cache(self, cache: Any) -> None:
        """Take everything out of the processor's caches."""
        cache.zero_()
