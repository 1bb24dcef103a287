"""Python's collector and compiling: what the first compilation made is not looked at again at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys, weakref
import mltriton, mltriton.language as tl

@mltriton.jit
def add(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) + n)

class Node:
    pass

if "frozen" in sys.argv:
    gc.freeze()
frozen = gc.get_freeze_count()
node = Node()
node.itself, dead = node, weakref.ref(node)
before = len(gc.get_objects(generation=2))
mltriton.compile(add, "*fp32, i32, 64", target="cpu")
del node
assert gc.isenabled()
assert frozen // 2 * ("frozen" in sys.argv) <= gc.get_freeze_count() <= frozen
young = len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1))
grown = len(gc.get_objects(generation=2)) - before
gc.collect()
assert dead() is None
print(young, grown)
"""


@pytest.mark.parametrize("how", ["usual", "frozen"])
def test_what_the_first_compilation_made_is_old(tmp_path, how):
    """Unless the program keeps objects frozen, which must stay so."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    env = os.environ | {"MLTRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(path), how], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    young, grown = map(int, done.stdout.split())
    assert (grown > 10 * young) == (how == "usual")
