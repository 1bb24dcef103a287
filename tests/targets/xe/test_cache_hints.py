"""Cache modifiers and eviction policies on Xe: what Intel's compiler makes of them, that results stay, and remarks."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.ir.parser import parse_module
from mltriton.targets.xe.cache_hints import LOADS, STORES, Controls
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.ocloc import compile_without_spills, disassemble
from mltriton.targets.xe.spirv.emission import emit
from mltriton.tools.remarks import remarks_of


@triton.jit
def hinted(x, y, z, places, N, LC: tl.constexpr, LE: tl.constexpr, SC: tl.constexpr, SE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [16, N], [N, 1], [16, 16])
    total = tl.zeros((16, 16), tl.float32)
    for k in range(0, N, 16):
        total += tl.load_tensor_descriptor(source, [0, k], cache_modifier=LC, eviction_policy=LE)
    there = tl.make_block_ptr(y, (16, 16), (16, 1), (0, 0), (16, 16), (1, 0))
    tl.store(there, total, cache_modifier=SC, eviction_policy=SE)
    lane = tl.arange(0, 16)
    where = tl.load(places + lane, cache_modifier=LC, eviction_policy=LE)
    tl.store(z + lane, tl.load(x + where, cache_modifier=LC, eviction_policy=LE), cache_modifier=SC, eviction_policy=SE)


SIGNATURE = "*fp32:16, *fp32:16, *fp32:16, *i32:16, i32:16"
LETTERS = {"UNCACHED": "uc", "CACHED": "ca", "STREAMING": "st", "WRITE_THROUGH": "wt", "WRITE_BACK": "wb"}


def words(load: str, store: str) -> dict[str, Any]:
    """The kernel's constants for a hint of its loads and one of its stores."""
    pairs = (("", word) if len(word) > 2 else (f".{word}", "") for word in (load, store))
    return dict(zip(("LC", "LE", "SC", "SE"), (text for pair in pairs for text in pair), strict=True))


def suffix(asked: Controls) -> str:
    levels: tuple[IntEnum, ...] = asked[1:]
    return "." + ".".join(LETTERS[level.name] for level in levels)


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize(("name", "payloads"), [("pvc", False), ("bmg", True)])
def test_messages_say_how_they_are_cached(name: str, payloads: bool) -> None:
    """A block load, a gather and stores, with each word; Intel's compiler knows every combination."""
    for load, store in zip(LOADS, STORES, strict=True):
        how: dict[str, Any] = {"target": f"xe:{name}", "num_warps": 1, "address_payloads": payloads}
        kernel = triton.compile(hinted, SIGNATURE, words(load, store), **how)
        assert ("AddrPayload" in kernel.asm["llvm"]) == payloads
        native = compile_without_spills(emit(kernel.asm["llvm"]), device(name), 1)
        assert "nsupported" not in native.log
        [text] = disassemble(native).values()
        found = {line.rpartition("; ")[2].split()[0] for line in text.splitlines() if ".ugm" in line and "; " in line}
        loaded, stored = suffix(LOADS[load]), suffix(STORES[store])
        expected = {f"load_block2d.ugm.d32.a64{loaded}", f"load.ugm.d32.a64{loaded}"}
        assert expected | {f"store_block2d.ugm.d32.a64{stored}", f"store.ugm.d32.a64{stored}"} <= found


@pytest.mark.usefixtures("queue")
def test_hints_change_no_result() -> None:
    x = np.arange(16 * 48, dtype=np.float32).reshape(16, 48)
    y, z, places = np.zeros((16, 16), np.float32), np.zeros(16, np.float32), np.arange(700, 732, 2, dtype=np.int32)
    hinted[(1,)](x, y, z, places, 48, **words("cg", "evict_first"), target="xe:pvc", num_warps=1)
    assert (y == x.reshape(16, 3, 16).sum(1)).all()
    assert (z == x.ravel()[places]).all()


def test_remarks_on_hints() -> None:
    """What is asked of the caches; a word that is none of a load's is said to be left out."""
    job = triton.compile(hinted, SIGNATURE, words("cs", "wt"), target="xe:pvc", num_warps=1).job
    module = job.module("ttg")
    how = {remark.what: remark.how for remark in remarks_of(module)}
    assert how["load 16x16xf32"].endswith("; streaming in L1, cached in L3")
    assert how["store 16x16xf32"].endswith("; write through in L1, uncached in L3")
    text = str(module).replace("cacheModifier = cs", "cacheModifier = wt")
    assert "the caches as usual, since wt is no hint of a load" in "\n".join(map(str, remarks_of(parse_module(text))))
