"""The SPIR-V modules of one kernel: as it was compiled, and for matrices that 2D block accesses cannot take.

Level: runtime. Takes what `target.py` made of a kernel; the second kind is made of the program at the intrinsic level,
which the binary keeps, when a launch first needs it, and is kept in the on-disk cache. Guarantees: a module takes
nothing for granted that is among the failing surfaces; launches that need none but the first import no compiler module.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from zlib import compress, decompress

from mltriton.errors import TargetError
from mltriton.targets.target import Binary
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.facts import XeFacts
from mltriton.targets.xe.launch_guards import LaunchGuards, Surface

# The module for these failing surfaces, from the text of the program at the intrinsic level; for emulation or not.
Build = Callable[[str, tuple[Surface, ...], bool], bytes]


class KernelModules:
    """The modules of the kernel `name`, of which `facts` are known; `key` identifies the compiler and the target."""

    def __init__(self, binary: Binary, facts: XeFacts, name: str, build: Build, key: Sequence[str]) -> None:
        self._binary = binary
        self._name = name
        self._build = build
        self._key = key
        self.guards = LaunchGuards(facts.checked, facts.uses, name) if facts.checked else None  # of the arguments
        self._made: dict[tuple[bool, tuple[Surface, ...]], bytes] = {}

    def of(self, queue: Queue, failing: tuple[Surface, ...]) -> bytes:
        """The module for a queue's device."""
        key = (queue.emulated, failing)
        if key not in self._made:
            self._made[key] = self._version(queue.emulated, failing) if failing else self._first(queue.emulated)
        return self._made[key]

    def _first(self, emulated: bool) -> bytes:
        if not emulated:
            return self._binary.object
        text = self._binary.metadata.get("emulated")
        if text is None:
            message = f"kernel {self._name} was compiled where kernels are not emulated"
            raise TargetError(message, hint="Compile it here.")
        return unpacked(text)

    def _version(self, emulated: bool, failing: tuple[Surface, ...]) -> bytes:
        from mltriton.runtime import config
        from mltriton.runtime.cache import default_cache, digest

        program = unpacked(self._binary.metadata["program"])
        cache, key = default_cache(), digest(list(self._key), program, failing, emulated)
        found = None if config.ALWAYS_COMPILE.get() else cache.get(key)
        if found is not None and "object" in found:
            return found["object"]
        made = self._build(program.decode(), failing, emulated)
        cache.put(key, {"object": made})
        return made


def packed(image: bytes) -> str:
    """Bytes as JSON takes them."""
    return b64encode(compress(image)).decode()


def unpacked(text: str) -> bytes:
    """The opposite of `packed`."""
    return decompress(b64decode(text))
