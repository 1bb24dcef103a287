"""Object files changed at random are linked or refused by a named error, linked images are refused; nothing is run."""

from __future__ import annotations

import platform
import random
import struct
import subprocess
import sys

import pytest

import mltriton
from mltriton.errors import TritonError
from mltriton.kernels.normalization import softmax_kernel
from mltriton.runtime.native.objects import linked, load_object
from mltriton.targets.llvm.toolchain import compile_object

SIGNATURE = {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "x_stride": "i32", "y_stride": "i32", "n_columns": "i32"}
WORDS = (2**64 - 1, 2**63, 2**31, 0)
SECTIONS = 0x28  # where an ELF header says at which offset the headers of sections stand


def mutated(image: bytes, draw: random.Random) -> bytes:
    """The image with one to four bytes or words changed, most of them in headers, or cut off."""
    changed = bytearray(image)
    headers = min(struct.unpack_from("<Q", image, SECTIONS)[0], len(image) - 1)
    for _ in range(draw.randint(1, 4)):
        if len(changed) < 300:
            break
        match draw.randrange(4):
            case 0:
                changed[draw.randrange(64)] = draw.randrange(256)
            case 1:
                changed[draw.randrange(min(headers, len(changed) - 1), len(changed))] = draw.choice([0, 255, 16])
            case 2:
                place = draw.randrange(64, len(changed) - 8) & ~7
                struct.pack_into("<Q", changed, place, draw.choice([*WORDS, draw.getrandbits(64)]))
            case _:
                del changed[draw.randrange(1, len(changed)) :]
    return bytes(changed)


def link_many(seed: int, count: int) -> None:
    draw = random.Random(seed)
    kernel = mltriton.compile(softmax_kernel, SIGNATURE, {"FLOAT": mltriton.language.float32, "BLOCK": 64})
    image = compile_object(kernel.asm["llvm"], kernel.job.target._machine())
    for _ in range(count):
        try:
            load_object(mutated(image, draw), ["kernel"])
        except TritonError:
            continue
    made = kernel.binary.object
    assert made == linked(image)
    for _ in range(count):
        changed = mutated(made, draw)
        try:
            load_object(changed, ["kernel"])
        except TritonError:
            continue
        assert changed == made


@pytest.mark.skipif(platform.machine() != "x86_64", reason="objects of this machine are linked by LLVM")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_damaged_objects(seed):
    """In a process of its own, which would die of what must not happen."""
    command = [sys.executable, __file__, str(seed), "400"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr[-2000:]


if __name__ == "__main__":
    link_many(int(sys.argv[1]), int(sys.argv[2]))
