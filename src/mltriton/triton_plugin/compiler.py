"""The backend `cpu` of the real Triton: from the program that upstream's front end writes to machine code.

Level: tt to binary. Imported by upstream when it looks for backends, so that `triton` is the real one here. Upstream
inlines calls and simplifies (stage `ttir`); `compiler/text.py` does the rest (stage `mltriton`: what names the kernel
in our cache).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from hashlib import sha256
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    BaseBackend: Any = object
else:
    from triton.backends.compiler import BaseBackend

_EXTENSION = "mltriton"


@dataclass(frozen=True)
class CPUOptions:
    """What upstream's front end and launches ask of options; of meaning here are `num_warps`, `num_stages`, `debug`."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    warp_size: int = 1
    debug: bool = False
    arch: str = ""
    backend_name: str = "cpu"
    sanitize_overflow: bool = False
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    maxnreg: int | None = None
    ir_override: str | None = None
    extern_libs: tuple[tuple[str, str], ...] = ()
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4nv", "fp8e5")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3")
    max_num_imprecise_acc_default: int = 0
    allow_fp8e4nv: bool = True
    allow_fp8e4b15: bool = False
    # Of other GPUs: configurations name them, and they change nothing here.
    waves_per_eu: int | None = None
    kpack: int | None = None
    matrix_instr_nonkdim: int | None = None
    schedule_hint: str | None = None
    threads_per_warp: int | None = None

    def hash(self) -> str:
        """What tells options apart in upstream's cache."""
        return sha256(repr(sorted(self.__dict__.items())).encode()).hexdigest()


class CPUBackend(BaseBackend):
    """Compiles for this machine's CPU."""

    binary_ext = _EXTENSION
    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: Any) -> bool:
        """Whether it is the CPU."""
        return target.backend == "cpu"

    def hash(self) -> str:
        """The compiler and the machine."""
        from mltriton.runtime.fingerprint import compiler_fingerprint  # Upstream loads the plug-in early.
        from mltriton.targets.target import find_target

        return f"{compiler_fingerprint()}-{find_target('cpu').fingerprint}"

    def parse_options(self, opts: dict[str, Any]) -> CPUOptions:
        """The options that there are among the keywords of a launch."""
        known = {field.name for field in fields(CPUOptions)}
        return CPUOptions(**{name: value for name, value in opts.items() if name in known and value is not None})

    def pack_metadata(self, metadata: Any) -> tuple[int, ...]:
        """What launchers take."""
        return (metadata.num_warps, metadata.num_ctas, metadata.shared)

    def get_codegen_implementation(self, options: CPUOptions) -> dict[str, Any]:
        """Dots may be of any size."""
        return {"min_dot_size": lambda left, right: (1, 1, 1)}  # pyright: ignore[reportUnknownLambdaType]

    def get_module_map(self) -> dict[str, ModuleType]:
        """Upstream's libdevice, whose functions are found by their symbols."""
        return {"triton.language.extra.libdevice": import_module("triton.language.extra.cuda.libdevice")}

    def load_dialects(self, ctx: Any) -> None:
        """No others than upstream's."""

    def add_stages(self, stages: dict[str, Any], options: CPUOptions, language: Any) -> None:
        """Upstream's program, then ours."""

        def compiled(source: Any, metadata: dict[str, Any]) -> bytes:
            return _compiled(str(source), metadata, options)

        stages["ttir"] = _simplified
        stages[_EXTENSION] = compiled


def _simplified(module: Any, metadata: dict[str, Any]) -> Any:
    """The program with calls inlined, by upstream's own passes."""
    library: Any = import_module("triton._C.libtriton")
    manager = library.ir.pass_manager(module.context)
    for add in ("add_inliner", "add_canonicalizer", "add_cse", "add_symbol_dce"):
        getattr(library.passes.common, add)(manager)
    manager.run(module, "make_ttir")
    return module


def _compiled(text: str, metadata: dict[str, Any], options: CPUOptions) -> bytes:
    """What loading needs to find the compiled kernel in our cache, or to compile it again."""
    from mltriton.compiler.text import compile_text  # Upstream loads the plug-in early.

    asked = {name: getattr(options, name) for name in ("num_warps", "num_stages", "debug")}
    kernel = compile_text(text, asked)
    metadata["name"], metadata["shared"] = kernel.name, kernel.metadata.shared
    return json.dumps({"text": text, "options": asked}).encode()
