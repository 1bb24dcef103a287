"""The on-disk cache: whole entries or none, many writers, corrupt files, limits, unusable directories."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mltriton
from mltriton.runtime.cache import CacheDir, CacheWarning, default_cache, digest

KEY = digest("key")
FILES = {"kernel.o": bytes(range(256)) * 8, "empty": b"", "kernel.ll": b"define void @kernel()"}


@pytest.fixture
def cache(tmp_path: Path) -> CacheDir:
    return CacheDir(tmp_path / "new" / "cache")


def the_file(cache: CacheDir) -> Path:
    [entry] = cache.entries()
    return Path(entry.path)


def test_gives_back_what_was_put(cache):
    assert cache.get(KEY) is None
    assert cache.metadata(KEY) is None
    cache.put(KEY, FILES, {"kernel": "add", "scratch_bytes": 64})
    assert cache.get(KEY) == FILES
    assert cache.metadata(KEY) == {"kernel": "add", "scratch_bytes": 64}
    assert CacheDir(cache.directory).get(KEY) == FILES
    assert [entry.key for entry in cache.entries()] == [KEY]
    cache.put(KEY, {"other": b"1"})
    assert cache.get(KEY) == {"other": b"1"}


def test_discard_and_clear(cache):
    for number in range(5):
        cache.put(digest(number), FILES)
    cache.discard(digest(3))
    assert cache.get(digest(3)) is None
    assert cache.clear() == 4
    assert cache.size() == 0


@pytest.mark.parametrize("key", ["", "ab", "../../etc/passwd", "a/b/c"])
def test_refuses_keys_that_are_paths(cache, key):
    with pytest.raises(ValueError, match="hex digest"):
        cache.put(key, FILES)
    with pytest.raises(ValueError, match="hex digest"):
        cache.get(key)


def test_every_truncation_is_found(cache):
    cache.put(KEY, {"a": b"12345"})
    path = the_file(cache)
    image = path.read_bytes()
    for length in range(len(image)):
        path.write_bytes(image[:length])
        assert cache.get(KEY) is None
        assert not path.exists()
    cache.put(KEY, {"a": b"12345"})
    assert cache.get(KEY) == {"a": b"12345"}


def test_every_changed_byte_is_found(cache):
    cache.put(KEY, {"a": b"12345"}, {"b": 1})
    path = the_file(cache)
    image = path.read_bytes()
    for position in range(len(image)):
        changed = bytearray(image)
        changed[position] ^= 0x20
        path.write_bytes(changed)
        assert cache.get(KEY) is None, position


def test_prunes_the_least_recently_used(cache):
    keys = [digest(number) for number in range(6)]
    for age, key in enumerate(keys):
        cache.put(key, {"data": b"x" * 1000})
        path = next(entry.path for entry in cache.entries() if entry.key == key)
        os.utime(path, (time.time() - 10_000 * (age + 1),) * 2)
    cache.get(keys[5])  # The oldest is used again.
    size = cache.size() // 6
    assert cache.prune(3 * size) == 3
    assert [cache.get(key) is not None for key in keys] == [True, True, False, False, False, True]
    assert cache.prune() == 0


def test_keeps_its_limit_while_putting(tmp_path):
    cache = CacheDir(tmp_path, max_size=20_000)
    for number in range(64):
        cache.put(digest(number), {"data": b"x" * 1000})
    assert 10_000 < cache.size() <= 20_000


def test_removes_files_of_dead_processes(cache):
    cache.put(KEY, FILES)
    left_behind = the_file(cache).with_name("tmp123.partial")
    left_behind.write_bytes(b"half")
    fresh = left_behind.with_name("tmp456.partial")
    fresh.write_bytes(b"half")
    os.utime(left_behind, (time.time() - 7200,) * 2)
    cache.prune()
    assert not left_behind.exists()
    assert fresh.exists()


def test_an_unusable_directory_means_memory_and_one_warning(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    cache = CacheDir(blocked / "cache")
    with pytest.warns(CacheWarning, match="cannot be written"):
        cache.put(KEY, FILES, {"a": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(digest(2), FILES)
    assert cache.get(KEY) == FILES
    assert cache.metadata(KEY) == {"a": 1}
    assert cache.clear() == 2
    assert cache.get(KEY) is None


def test_the_default_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "one"))
    first = default_cache()
    assert default_cache() is first
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "two"))
    assert default_cache().directory == str(tmp_path / "two")


WRITER = """
import sys
from pathlib import Path
from mltriton.runtime.cache import CacheDir, digest
cache = CacheDir(Path(sys.argv[1]))
seen = 0
for turn in range(300):
    number = turn % 5
    found = cache.get(digest(number))
    if found is not None:
        seen += 1
        writer = found["writer"]
        assert found["data"] == writer * (1000 + number), "torn entry"
    cache.put(digest(number), {"writer": sys.argv[2].encode(), "data": sys.argv[2].encode() * (1000 + number)})
    if turn % 50 == 0:
        cache.discard(digest(number))
print(seen)
"""


def test_many_processes(tmp_path):
    source = str(Path(mltriton.__file__).parents[1])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name],
            env=os.environ | {"PYTHONPATH": source},
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abcd"
    ]
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert int(output) > 200
    assert not list(tmp_path.glob("*/*.partial"))


def test_many_threads(cache):
    problems: list[object] = []

    def work(name: bytes) -> None:
        for turn in range(100):
            cache.put(digest(turn % 3), {"data": name * 5000})
            found = cache.get(digest(turn % 3))
            if found is None or len(set(found["data"])) != 1 or len(found["data"]) != 5000:
                problems.append(found)

    threads = [threading.Thread(target=work, args=(bytes([65 + number]),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def calls_of(work: Callable[[], object]) -> list[str]:
    """The functions that work runs through, Python's and C's."""
    names: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            names.append(frame.f_code.co_name if event == "call" else argument.__name__)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names


def test_reading_a_small_entry_takes_few_calls_however_many_there_are(cache):
    cache.put(KEY, {"kernel.o": bytes(8192)}, {"scratch_bytes": 0})
    cache.get(KEY)
    alone = calls_of(lambda: cache.get(KEY))
    for number in range(20):
        cache.put(digest(number), {"kernel.o": bytes(8192)})
    assert calls_of(lambda: cache.get(KEY)) == alone
    assert len(alone) < 200


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
PARTS = st.recursive(SCALARS, lambda inner: st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner))


def spelled(part: object) -> object:
    """Return something that is equal exactly for parts that are the same value of the same type."""
    match part:
        case float():
            return ("float", part, math.copysign(1, part))
        case tuple():
            return ("tuple", tuple(map(spelled, part)))
        case dict():
            return ("dict", frozenset((key, spelled(value)) for key, value in part.items()))
        case _:
            return (type(part), part)


@given(PARTS, PARTS)
def test_digests_tell_different_values_apart(one, other):
    assert (digest(one) == digest(other)) == (spelled(one) == spelled(other))


def test_the_digest_is_the_same_in_every_process():
    parts = "'a', 1, {'x': {'p', 'q', 'r'}}, None, 2.5, (b'', True)"
    code = f"from mltriton.runtime.cache import digest; print(digest({parts}))"
    source = str(Path(mltriton.__file__).parents[1])
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": source, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1
    assert digest("ab", "c") != digest("a", "bc")
    assert digest([1, 2]) == digest((1, 2))


def test_the_digest_refuses_what_differs_between_processes():
    with pytest.raises(TypeError, match="object has no digest"):
        digest(object())
