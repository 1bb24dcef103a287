"""`triton.backends`: the backends that there are, by name: `cpu` and `nvidia`.

Level: user. `backends["cpu"]` has a `compiler` (a `BaseBackend`) and a `driver`, classes both. Programs ask a backend
which options there are and what identifies it; compiling is `triton.compile`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from mltriton.compiler.options import OPTIONS, REFUSED, Options
from mltriton.errors import TargetError
from mltriton.runtime.alignment import ALIGNMENT
from mltriton.runtime.driver import Driver, DriverBase, GPUTarget
from mltriton.runtime.parameters import IGNORED_OPTIONS
from mltriton.targets.nvidia.active import CudaDriver
from mltriton.targets.options import known_options
from mltriton.targets.target import find_target

__all__ = ["Backend", "BaseBackend", "CPUBackend", "DriverBase", "GPUTarget", "Language", "backends", "make_backend"]

__path__: list[str] = []  # Programs import modules of the same content below it.


def __getattr__(name: str) -> Any:
    """Modules below this one, which `import triton` gives by itself."""
    if name not in ("compiler", "driver"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"triton.backends.{name}")


class Language(Enum):
    """In what a kernel is written."""

    TRITON = 0
    GLUON = 1


class BaseBackend:
    """What a backend offers; `target` is what it compiles for."""

    def __init__(self, target: GPUTarget) -> None:
        if not self.supports_target(target):
            raise TargetError(f"{type(self).__name__} does not compile for {target}", hint="Use its own targets.")
        self.target = target

    @property
    def target_name(self) -> str:
        """What the compiler calls the target."""
        return self.target.backend

    @classmethod
    def supports_target(cls, target: GPUTarget) -> bool:
        """Whether the backend compiles for it."""
        raise NotImplementedError("a backend says which targets it has")

    @staticmethod
    def parse_attr(text: str) -> list[list[Any]]:
        """The attributes of a parameter that `get_int_specialization` and its like told by a letter."""
        return [["tt.divisibility", ALIGNMENT]] if "D" in text else []

    @staticmethod
    def get_int_specialization(value: int, **how: Any) -> str:
        """ "D" for a number that is divisible by 16."""
        return "D" if value % ALIGNMENT == 0 and how.get("align") else ""

    @staticmethod
    def get_tensor_specialization(tensor: Any, **how: Any) -> str:
        """ "D" for a tensor whose address is divisible by 16."""
        return "D" if tensor.data_ptr() % ALIGNMENT == 0 and how.get("align") else ""


class CPUBackend(BaseBackend):
    """This machine's CPU."""

    name = "cpu"  # of what it compiles for

    @classmethod
    def supports_target(cls, target: GPUTarget) -> bool:
        """Whether it compiles for it."""
        return target.backend == cls.name

    def hash(self) -> str:
        """What machine code depends on besides the program."""
        return find_target(self.name).fingerprint

    def parse_options(self, options: dict[str, Any]) -> SimpleNamespace:
        """All options with their values: those of a launch here, and upstream's for GPUs (None)."""
        known = dict.fromkeys(sorted((*IGNORED_OPTIONS, *REFUSED)))
        known |= {name: getattr(Options(), name) for name in OPTIONS}
        known |= {name: item.default for name, (item, _) in known_options().items()}
        known |= {"sanitize_overflow": False, "backend_name": self.name}
        return SimpleNamespace(**known | {name: value for name, value in options.items() if name in known})

    def get_codegen_implementation(self, options: Any = None) -> dict[str, Any]:
        """What code generation asks of a backend: that dots may be of any size."""
        return {"min_dot_size": lambda left, right: (1, 1, 1)}  # pyright: ignore[reportUnknownLambdaType]

    def get_module_map(self) -> dict[str, ModuleType]:
        """Modules that stand for others in kernels."""
        from mltriton.language.extra import libdevice  # Few programs need it.

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """Nothing: dialects are there."""


class CUDABackend(CPUBackend):
    """This machine's NVIDIA GPUs."""

    name = "cuda"

    @property
    def target_name(self) -> str:
        """By compute capability."""
        return f"cuda:{self.target.arch}"


@dataclass(frozen=True)
class Backend:
    """A backend's classes."""

    compiler: type[BaseBackend]
    driver: type[DriverBase]


backends: dict[str, Backend] = {"cpu": Backend(CPUBackend, Driver), "nvidia": Backend(CUDABackend, CudaDriver)}


def make_backend(target: GPUTarget) -> BaseBackend:
    """The backend that compiles for a target; `TargetError` where there is none."""
    for backend in backends.values():
        if backend.compiler.supports_target(target):
            return backend.compiler(target)
    raise TargetError(
        f"there is no backend for {target.backend!r}: mltriton stands in for triton",
        expected=f"one of {', '.join(backends)}",
        found=str(target),
    )
