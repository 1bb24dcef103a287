"""The table of upstream's names: which of mltriton's modules stands for each of upstream's, and what is added to it.

Level: user. A name that is not here is asked of the module of ours; what neither has is an `AttributeError` that says
so (`modules.py`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "3.9.0"  # of upstream, whose names these are: programs compare `triton.__version__` with what they need

# Modules of ours as they stand. Whatever is below one of these is below ours, too.
SAME: Mapping[str, str] = {
    "triton.language": "mltriton.language",
    "triton.knobs": "mltriton.knobs",
    "triton.profiler": "mltriton.as_triton.profiler",
    "triton.errors": "mltriton.errors",
    "triton.tools": "mltriton.tools",
    "triton._utils": "mltriton.as_triton.utilities",
    "triton.backends": "mltriton.as_triton.backends",
    "triton.backends.compiler": "mltriton.as_triton.backends",
    "triton.backends.driver": "mltriton.runtime.driver",
    "triton.compiler": "mltriton.as_triton.compiler",
    "triton.compiler.compiler": "mltriton.as_triton.compiler",
    "triton._C.libtriton.ir": "mltriton.as_triton.program_view",
    "triton.compiler.code_generator": "mltriton.as_triton.compiler",
    **{
        f"triton.language.extra.{vendor}{part}": f"mltriton.language.extra.{home}"
        for vendor in ("cuda", "hip", "intel")
        for part, home in (("", "cuda"), (".libdevice", "libdevice"), (".gdc", "cuda"), (".utils", "cuda"))
    },
}

# Modules made here: names from modules of ours (`module:name` where it has another one), then those of the module
# under "" (where there is one).
MADE: Mapping[str, Mapping[str, str]] = {
    "triton": {
        "": "mltriton",
        "compile": "mltriton.as_triton.compiler",
        "KernelInterface": "mltriton.runtime.interface",
        "MockTensor": "mltriton.runtime.specialization",
        "OutOfResources": "mltriton.errors",
        "InterpreterError": "mltriton.errors",
        "AsyncCompileMode": "mltriton.runtime.asynchronous",
        "FutureKernel": "mltriton.runtime.asynchronous",
        "must_use_result": "mltriton.as_triton.utilities",
    },
    "triton.runtime": {
        "": "mltriton.runtime",
        "Heuristics": "mltriton.runtime.autotuner",
        "InterpreterError": "mltriton.errors",
        "KernelInterface": "mltriton.runtime.interface",
        "MockTensor": "mltriton.runtime.specialization",
        "OutOfResources": "mltriton.errors",
    },
    "triton.runtime.jit": {
        "": "mltriton.runtime.jit",
        "ConstexprFunction": "mltriton.frontend.function",
        "JITCallable": "mltriton.frontend.function:LanguageFunction",
        "KernelInterface": "mltriton.runtime.interface",
        "KernelParam": "mltriton.runtime.parameters:Parameter",
        "MockTensor": "mltriton.runtime.specialization",
        "TensorWrapper": "mltriton.runtime.tensor_wrapper",
        "reinterpret": "mltriton.runtime.tensor_wrapper",
        "knobs": "mltriton",
        **dict.fromkeys(
            ("find_paths_if", "get_iterable_path", "type_canonicalisation_dict"), "mltriton.as_triton.utilities"
        ),
        "mangle_type": "mltriton.as_triton.compiler",
        "native_specialize_impl": "mltriton.as_triton.compiler",
    },
    "triton.runtime.autotuner": {
        "": "mltriton.runtime.autotuner",
        "OutOfResources": "mltriton.errors",
        "knobs": "mltriton",
    },
    "triton.compiler.errors": {
        "": "mltriton.errors",
        "CompileTimeAssertionFailure": "mltriton.as_triton.compiler",
        "UnsupportedLanguageConstruct": "mltriton.as_triton.compiler",
    },
    "triton.runtime.errors": {
        "": "mltriton.errors",
        "AutotunerError": "mltriton.as_triton.compiler",
        "PTXASError": "mltriton.as_triton.compiler",
    },
    "triton.runtime._async_compile": {"": "mltriton.runtime.asynchronous"},
    "triton.runtime.cache": {
        "": "mltriton.runtime.cache",
        **dict.fromkeys(
            (
                *("CacheManager", "FileCacheManager", "get_cache_manager", "get_dump_manager", "get_override_manager"),
                "make_so_cache_key",
            ),
            "mltriton.as_triton.file_cache",
        ),
        "triton_key": "mltriton.as_triton.compiler",
        "_base32": "mltriton.as_triton.utilities",
        "knobs": "mltriton",
    },
    "triton._C": {"": "mltriton.as_triton.program_view"},
    "triton._C.libtriton": {"": "mltriton.as_triton.program_view"},
    "triton.testing": {
        "": "mltriton.testing",
        **dict.fromkeys(
            ("get_dram_gbps", "get_max_simd_tflops", "get_max_tensorcore_tflops", "nvsmi", "cuda_memcheck"),
            "mltriton.as_triton.throughput",
        ),
        **dict.fromkeys(
            ("do_bench_cudagraph", "do_bench_cudagraph_proton", "do_bench_proton", "set_gpu_clock"),
            "mltriton.as_triton.measuring",
        ),
    },
    "triton.runtime._allocation": {
        "": "mltriton.runtime.allocation",
    },
}

# Modules that upstream has and nobody needs to look for here.
ABSENT: Mapping[str, str] = {
    "triton._C": "upstream's compiled part; mltriton has of it only what torch looks at: triton._C.libtriton.ir",
    "triton.profiler.language": "kernels are not instrumented: scopes are the host's (triton.profiler.scope)",
    "triton.experimental": "Gluon names the layouts of particular GPUs; write the kernel in triton.language",
    "triton.language.extra.tlx": "TLX is for particular GPUs; write the kernel in triton.language",
}
