"""`mltriton.knobs`: what upstream lets programs set of the runtime, by upstream's names.

Level: user. A knob is a view of an environment variable (`runtime/config.py`, or upstream's own where only programs
look at it), so that setting it holds for processes started later too; `del` takes what was set away. The hooks are
objects: launch hooks take `add(hook)` and `remove(hook)`, or a function (None: no hook), and get an object whose
`get()` gives a dict with the kernel's `name` and what its `launch_metadata` adds; those of loading
(`kernel_load_start_hook`) get what is loaded (`CompiledKernel.loaded`); `jit_cache_hook` and `jit_post_compile_hook`
are called before and after a kernel is compiled, or loaded from the cache, for new arguments
(`hooks.compile_with_hooks`), `autotuning.listener` after a configuration was chosen. `with knobs.runtime.scope():` puts
everything back. A knob that there is not is a `KnobError`, which is an `AttributeError` too.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mltriton.errors import OptionError, calling_location
from mltriton.runtime import config, hooks, jit
from mltriton.runtime.config import Setting

__all__ = ["KnobError", "amd", "autotuning", "build", "cache", "compilation", "language", "nvidia", "proton", "runtime"]


class KnobError(OptionError, AttributeError):
    """A knob that there is not."""


@dataclass(frozen=True)
class Variable:
    """A knob that reads and writes an environment variable."""

    setting: Setting[Any]

    def get(self) -> Any:
        """What is set, or the default."""
        return self.setting.get()

    def set(self, value: Any) -> None:
        """Set the variable; None takes it away."""
        if value is None:
            os.environ.pop(self.setting.name, None)
        else:
            os.environ[self.setting.name] = str(int(value)) if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class CompileHook:
    """A function that is called around each compilation; `when` is a key of `jit.COMPILE_HOOKS`."""

    when: str

    def get(self) -> Any:
        """The function, or None."""
        return jit.COMPILE_HOOKS.get(self.when)

    def set(self, value: Any) -> None:
        """Call another one, or none."""
        jit.COMPILE_HOOKS.pop(self.when, None)
        if value is not None:
            jit.COMPILE_HOOKS[self.when] = value


@dataclass(frozen=True)
class Chain:
    """Hooks of launches."""

    chain: hooks.HookChain

    def get(self) -> hooks.HookChain:
        """The chain itself."""
        return self.chain

    def set(self, value: Any) -> None:
        """Run only `value`, or nothing."""
        if isinstance(value, hooks.HookChain):
            hook = value.calls[-1] if value.calls else None
        else:
            hook = value
        self.chain.set(hook)


@dataclass(frozen=True)
class Held:
    """A thing of the user's, or none, that a module has in a list; few programs need the module."""

    module: str
    name: str

    def get(self) -> Any:
        """The thing, or None."""
        return next(iter(self._list()), None)

    def set(self, value: Any) -> None:
        """Take another one, or none."""
        self._list()[:] = [] if value is None else [value]

    def _list(self) -> list[Any]:
        return getattr(import_module(self.module), self.name)


@dataclass(frozen=True)
class Class:
    """A class that an environment variable names, `MODULE:CLASS`."""

    setting: Setting[Any]

    def get(self) -> Any:
        """The class, imported; None where none is named. Raises `KnobError`."""
        text = self.setting.get()
        module, _, name = (text or "").partition(":")
        if text and not name:
            raise KnobError(f"{self.setting.name} names no class", expected="MODULE:CLASS", found=text)
        return getattr(import_module(module), name) if text else None

    def set(self, value: Any) -> None:
        """Take another class, or none."""
        Variable(self.setting).set(value if value is None else f"{value.__module__}:{value.__qualname__}")


Knob = Class | Variable | CompileHook | Chain | Held


def _text(name: str) -> Variable:
    """A variable that only programs look at."""
    return Variable(Setting(name, None, str, "upstream's"))


def _flag(name: str, default: bool = False) -> Variable:
    """A truth value that only programs look at."""
    return Variable(Setting(name, default, config.parse_flag, "upstream's"))


class Group:
    """Knobs by name, as attributes."""

    def __init__(self, name: str, knobs: Mapping[str, Knob]) -> None:
        self.__dict__["_name"] = name
        self.__dict__["knobs"] = knobs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._find(name).get()

    def __setattr__(self, name: str, value: Any) -> None:
        self._find(name).set(value)

    def __delattr__(self, name: str) -> None:
        self._find(name).set(None)

    def _find(self, name: str) -> Knob:
        found = self.__dict__["knobs"].get(name)
        if found is None:
            message = f"there is no knob {self.__dict__['_name']}.{name}"
            raise KnobError(
                message, expected=f"one of {', '.join(self.__dict__['knobs'])}", location=calling_location()
            )
        return found

    def __dir__(self) -> list[str]:
        return [*self.__dict__["knobs"], "scope", "reset"]

    @contextmanager
    def scope(self) -> Generator[None]:
        """Put the knobs back to what they were at the end of the `with` statement."""
        knobs: Mapping[str, Knob] = self.__dict__["knobs"]
        settings = [knob.setting for knob in knobs.values() if isinstance(knob, Variable | Class)]
        variables = {setting.name: os.environ.get(setting.name) for setting in settings}
        chains = [(knob.chain, list(knob.chain)) for knob in knobs.values() if isinstance(knob, Chain)]
        held = [(knob, knob.get()) for knob in knobs.values() if isinstance(knob, CompileHook | Held)]
        try:
            yield
        finally:
            for chain, calls in chains:
                chain.set(None)
                for call in calls:
                    chain.add(call)
            for knob, value in held:
                knob.set(value)
            for name, text in variables.items():
                if text is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = text

    def reset(self) -> Group:
        """Take away whatever was set."""
        for knob in self.__dict__["knobs"].values():
            knob.set(None)
        return self


runtime = Group(
    "runtime",
    {
        "interpret": Variable(config.INTERPRET),
        "debug": Variable(config.DEBUG),
        "launch_enter_hook": Chain(hooks.enter),
        "launch_exit_hook": Chain(hooks.leave),
        "kernel_load_start_hook": Chain(hooks.load),
        "kernel_load_end_hook": Chain(hooks.loaded),
        "override_arch": _text("TRITON_OVERRIDE_ARCH"),
        "jit_cache_hook": CompileHook("before"),
        "jit_post_compile_hook": CompileHook("after"),
    },
)
compilation = Group(
    "compilation",
    {
        "always_compile": Variable(config.ALWAYS_COMPILE),
        "allow_non_constexpr_globals": Variable(config.ALLOW_GLOBALS),
        "dump_ir": _flag("TRITON_KERNEL_DUMP"),
        "override": _flag("TRITON_KERNEL_OVERRIDE"),
        "store_binary_only": _flag("TRITON_STORE_BINARY_ONLY"),
        "use_ir_loc": _text("USE_IR_LOC"),
        "enable_asan": _flag("TRITON_ENABLE_ASAN"),
        "disable_line_info": _flag("TRITON_DISABLE_LINE_INFO"),
        "front_end_debugging": _flag("TRITON_FRONT_END_DEBUGGING"),
        "instrumentation_mode": _text("TRITON_INSTRUMENTATION_MODE"),
    },
)
language = Group(
    "language",
    {
        "fp32_default": Variable(config.F32_DEFAULT),
        "default_fp_fusion": _flag("TRITON_DEFAULT_FP_FUSION", default=True),
    },
)
autotuning = Group(
    "autotuning",
    {
        "print": Variable(config.PRINT_AUTOTUNING),
        "cache": Variable(config.CACHE_AUTOTUNING),
        "executor": Held("mltriton.runtime.compile_ahead", "chosen"),
        "listener": Held("mltriton.runtime.autotuner", "listeners"),
    },
)
cache = Group(
    "cache",
    {
        "dir": Variable(config.CACHE_DIR),
        "dump_dir": Variable(config.DUMP_DIR),
        "home_dir": _text("TRITON_HOME"),
        "override_dir": _text("TRITON_OVERRIDE_DIR"),
        "manager_class": Class(Setting("TRITON_CACHE_MANAGER", None, str, "MODULE:CLASS")),
    },
)
build = Group("build", {"cc": _text("CC")})
# Of other machines: programs set these before they know that there is none.
nvidia = Group(
    "nvidia",
    {
        "libdevice_path": _text("TRITON_LIBDEVICE_PATH"),
        "libcuda_path": _text("TRITON_LIBCUDA_PATH"),
        "ptxas": _text("TRITON_PTXAS_PATH"),
        "ptxas_options": _text("PTXAS_OPTIONS"),
        "disable_ptxas_opt": _flag("DISABLE_PTXAS_OPT"),
        "dump_nvptx": _flag("NVPTX_ENABLE_DUMP"),
        "dump_ptxas_log": _flag("TRITON_DUMP_PTXAS_LOG"),
    },
)
amd = Group(
    "amd",
    {
        "use_buffer_ops": _flag("AMDGCN_USE_BUFFER_OPS", default=True),
        "use_buffer_atomics": _flag("AMDGCN_USE_BUFFER_ATOMICS", default=True),
        "dump_amdgcn": _flag("AMDGCN_ENABLE_DUMP"),
        "libhip_path": _text("TRITON_LIBHIP_PATH"),
        "use_block_pingpong": _flag("TRITON_HIP_USE_BLOCK_PINGPONG"),
        "use_in_thread_transpose": _flag("TRITON_HIP_USE_IN_THREAD_TRANSPOSE"),
        "use_async_copy": _flag("TRITON_HIP_USE_ASYNC_COPY"),
        "scalarize_packed_fops": _flag("AMDGCN_SCALARIZE_PACKED_FOPS"),
    },
)
proton = Group("proton", {"disable": _flag("TRITON_PROTON_DISABLE")})
