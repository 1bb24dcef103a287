"""Compiled kernels as the entries of the on-disk cache.

Guarantees: what `to_files` wrote is read without importing a compiler module; anything else is read as no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from mltriton.compiler.job import Job
from mltriton.compiler.kernel import CompiledKernel, Metadata, options_in_metadata
from mltriton.runtime.packed import packed, unpacked
from mltriton.targets.target import Binary


def to_files(kernel: CompiledKernel) -> dict[str, bytes]:
    """The entry of a kernel that has a binary."""
    assert kernel.binary is not None
    known: dict[str, dict[str, Any]] = {"kernel": asdict(kernel.metadata), "binary": kernel.binary.metadata}
    known["kernel"]["timings"] = {}
    return {
        "metadata": packed(known),
        "object": kernel.binary.object,
        "llvm": kernel.asm["llvm"].encode(),
    }


def from_files(job: Job, files: Mapping[str, bytes], again: Callable[[Job], CompiledKernel]) -> CompiledKernel | None:
    """The kernel of an entry of the cache; None where the entry is not what `to_files` makes.

    `again` compiles the job anew, where the binary turns out to be damaged when it is loaded.
    """
    try:
        known = unpacked(files["metadata"])
        here = options_in_metadata(job) | {"written": tuple(known["kernel"]["written"]), "from_cache": True}
        metadata = Metadata(**known["kernel"] | here)
        binary = Binary(files["object"], known["binary"])
        lowered = job.target.restored(files["llvm"].decode(), binary)
    except (KeyError, TypeError, ValueError):
        return None
    return CompiledKernel(replace(job, fewer_stages=metadata.fewer_stages), metadata, binary, lowered, again)
