"""Settings from the environment: every variable this package reads, its type, its default and its meaning.

Level: all. A `Setting` reads its variable each time it is asked, so a program (or a test) may change the environment at
any moment before the value is needed. Guarantees: a value that cannot be read raises `ConfigError` naming the variable,
and `SETTINGS` lists everything there is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Generic, TypeGuard, TypeVar

from mltriton.records import record

from ..errors import TritonError

T = TypeVar("T", covariant=True)

MAX_THREADS = 1024  # Scratch buffers in native/sources/pieces.py.
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LEVELS = ("tt", "ttg", "warp", "intrinsic", "llvm", "asm", "ptx", "sass", "spirv", "isa", "all")
_TRUE_WORDS = {"1", "true", "yes", "on"}
_FALSE_WORDS = {"0", "false", "no", "off"}


class ConfigError(TritonError, ValueError):
    """An environment variable holds a text that is not a value of its type."""


class ThreadsError(TritonError, ValueError):
    """A number of threads that launches cannot use."""


class NoHomeError(ConfigError):
    """The user has no home directory, and no variable says where to keep files."""


def _read_as_upstream(name: str) -> tuple[str, str]:
    """Where mltriton stands in for triton: upstream's variable for a setting of ours, and what it says."""
    if "mltriton.as_triton" not in sys.modules:
        return name, ""
    from mltriton.as_triton.environment import READERS  # Few launches need it.

    return READERS[name]() if name in READERS else (name, "")


@record(frozen=True)
class Setting(Generic[T]):
    """One environment variable: `parse` turns its text into a value or raises `ValueError` saying what it wants.

    `upstream` is Triton's own variable of the same meaning, which counts where ours is not set.
    """

    name: str
    default: T
    parse: Callable[[str], T]
    doc: str
    upstream: str = ""

    def get(self) -> T:
        """Return the current value; an unset or empty variable means the default. Raises `ConfigError`."""
        name, text = self.name, os.environ.get(self.name, "")
        if not text.strip() and self.upstream and self.upstream in os.environ:
            name, text = self.upstream, os.environ[self.upstream]
        if not text.strip():
            name, text = _read_as_upstream(self.name)
        text = text.strip()
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise ConfigError(f"{name}={text!r} is not {error}", hint=self.doc) from None


def parse_count(text: str) -> int:
    """Read a positive integer."""
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("a positive integer")
    return int(text)


def check_threads(count: int) -> int:
    """Return a number of threads that launches can use. Raises `ThreadsError`."""
    if not 1 <= count <= MAX_THREADS:
        raise ThreadsError(f"the number of threads must be from 1 to {MAX_THREADS}", found=str(count))
    return count


def parse_threads(text: str) -> int:
    """Read a number of threads."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise ValueError(f"a number of threads from 1 to {MAX_THREADS}")
    return int(text)


def parse_size(text: str) -> int:
    """Read a number of bytes: an integer with an optional binary unit, such as `512K`, `64M` or `1G`."""
    digits = text.rstrip("KMGTkmgt")
    unit = text[len(digits) :].upper()
    if not digits.isdecimal() or unit not in _UNITS:
        raise ValueError("a number of bytes such as 512K, 64M or 1G")
    return int(digits) * _UNITS[unit]


def parse_flag(text: str) -> bool:
    """Read a truth value: 1, true, yes, on or 0, false, no, off."""
    word = text.lower()
    if word not in _TRUE_WORDS | _FALSE_WORDS:
        raise ValueError("a truth value (1 or 0)")
    return word in _TRUE_WORDS


def parse_levels(text: str) -> frozenset[str]:
    """Read a comma-separated list of levels, and of kernels after an @."""
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    if not all(word in _LEVELS or (word[0] == "@" and word[1:].isidentifier()) for word in words):
        raise ValueError(f"a list of {', '.join(_LEVELS)} and @KERNEL")
    return words


def parse_choice(*choices: str) -> Callable[[str], str]:
    """Return a parser that takes one of `choices`."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return parse


def parse_path(text: str) -> str:
    """Read a path; `~` is the home directory."""
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise ValueError("a path: there is no such home directory")
    return path


CACHE_DIR: Setting[str | None] = Setting(
    "MLTRITON_CACHE_DIR",
    None,
    parse_path,
    "Directory of the cache of compiled kernels; ~/.cache/mltriton if unset.",
)
CACHE_MAX_SIZE = Setting(
    "MLTRITON_CACHE_MAX_SIZE",
    2**30,
    parse_size,
    "Bytes the cache may hold on disk before the least recently used entries go.",
)
COMPILE_TIMEOUT: Setting[int | None] = Setting(
    "MLTRITON_COMPILE_TIMEOUT",
    None,
    parse_count,
    "Seconds compiling a kernel may take, with LLVM in a process of its own; no limit if unset, and LLVM runs here.",
)
NUM_THREADS: Setting[int | None] = Setting(
    "MLTRITON_NUM_THREADS",
    None,
    parse_threads,
    "Threads a CPU launch uses; if unset torch's number once torch is loaded, before that one for each CPU it may use.",
)
MAX_SCRATCH = Setting(
    "MLTRITON_MAX_SCRATCH",
    64 * 2**20,
    parse_size,
    "Bytes of scratch memory a kernel may have per thread; 64M if unset.",
)
LAUNCHER = Setting(
    "MLTRITON_LAUNCHER",
    "auto",
    parse_choice("auto", "native", "portable"),
    "How CPU kernels are launched: machine code (native), Python threads (portable), native if it works (auto).",
)
DUMP: Setting[frozenset[str]] = Setting(
    "MLTRITON_DUMP",
    frozenset(),
    parse_levels,
    "Levels to print while compiling: tt,ttg,warp,intrinsic,llvm,asm (of GPUs ptx,sass or spirv,isa) or all; with "
    "@NAME only of that kernel.",
)
DUMP_DIR: Setting[str | None] = Setting(
    "MLTRITON_DUMP_DIR",
    None,
    parse_path,
    "Directory that the levels of MLTRITON_DUMP are written to; standard error if unset.",
)
ALWAYS_COMPILE = Setting(
    "MLTRITON_ALWAYS_COMPILE", False, parse_flag, "Ignore what the on-disk cache holds and compile every kernel again."
)
DEBUG = Setting(
    "MLTRITON_DEBUG",
    False,
    parse_flag,
    "Compile every kernel with debug=True: tl.device_assert and integer overflow are checked; also TRITON_DEBUG.",
    "TRITON_DEBUG",
)
FULL_TRACEBACK = Setting(
    "MLTRITON_FULL_TRACEBACK",
    False,
    parse_flag,
    "Keep the calls inside the compiler in the tracebacks of a program's mistakes.",
)
SANITIZE = Setting(
    "MLTRITON_SANITIZE",
    False,
    parse_flag,
    "Check every access of every kernel: one outside of the arrays passed is an OutOfBoundsError, and is not done.",
)
F32_DEFAULT: Setting[str | None] = Setting(
    "MLTRITON_F32_DEFAULT",
    None,
    parse_choice("ieee", "tf32", "tf32x3"),
    "How tl.dot multiplies fp32 where its input_precision is not given; ieee if unset; also TRITON_F32_DEFAULT.",
    "TRITON_F32_DEFAULT",
)
ALLOW_GLOBALS = Setting(
    "MLTRITON_ALLOW_NON_CONSTEXPR_GLOBALS",
    False,
    parse_flag,
    "Kernels may name global numbers and strings that are no tl.constexpr; a changed one is compiled for anew.",
    "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS",
)
VERIFY_PASSES = Setting(
    "MLTRITON_VERIFY_PASSES", False, parse_flag, "Check the whole program after every pass of every kernel compiled."
)

PRINT_AUTOTUNING = Setting(
    "MLTRITON_PRINT_AUTOTUNING", False, parse_flag, "Show how far autotuning is, and its results as a table."
)
CACHE_AUTOTUNING = Setting(
    "MLTRITON_CACHE_AUTOTUNING", False, parse_flag, "Keep on disk what autotuning chose, for later processes."
)
AUTOTUNING_WORKERS: Setting[int | None] = Setting(
    "MLTRITON_AUTOTUNING_WORKERS",
    None,
    parse_count,
    "Threads that compile the configurations of an autotuned kernel; one for each CPU it may use if unset.",
)
INTERPRET = Setting(
    "MLTRITON_INTERPRET", False, parse_flag, "Run kernels that are decorated from now on in the reference executor."
)
OCLOC: Setting[str | None] = Setting(
    "MLTRITON_OCLOC",
    None,
    parse_path,
    "Intel's offline compiler; that on the PATH or in MLTRITON_XE_PREFIX if unset.",
)
XE_PREFIX: Setting[str | None] = Setting(
    "MLTRITON_XE_PREFIX",
    None,
    parse_path,
    "Directory that scripts/install-ocloc.sh installs into; ~/.local/share/mltriton/xe if unset.",
)


def _is_setting(found: object) -> TypeGuard[Setting[object]]:
    return isinstance(found, Setting)


SETTINGS = tuple(filter(_is_setting, globals().values()))


def cache_dir() -> str:
    """Return the directory of the on-disk cache: `MLTRITON_CACHE_DIR`, else `mltriton` in the user's cache directory.

    That is `XDG_CACHE_HOME`, which counts only where it is absolute, or `~/.cache`. Raises `NoHomeError` when no
    variable is set and the user has no home directory.
    """
    chosen = CACHE_DIR.get()
    if chosen is not None:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        try:
            base = parse_path("~/.cache")
        except ValueError:
            message = "the cache has no place: there is no home directory"
            raise NoHomeError(message, hint="Set MLTRITON_CACHE_DIR.") from None
    return os.path.join(base, "mltriton")
