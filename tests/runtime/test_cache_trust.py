"""Whom the cache trusts: files of this user alone, of the key that is asked for; everything else means compiling."""

from __future__ import annotations

import os
import shutil
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mltriton as triton
import mltriton.language as tl
from mltriton.runtime import config, private_files
from mltriton.runtime.cache import CacheDir, CacheWarning, default_cache, digest
from mltriton.runtime.packed import packed

KEY, OTHER = digest("key"), digest("other")
FILES = {"object": bytes(range(256)) * 8, "empty": b"", "llvm": b"define void @kernel()"}

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users and modes as POSIX has them")
as_root = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def cache(tmp_path: Path) -> CacheDir:
    cache = CacheDir(tmp_path / "new" / "cache")
    cache.put(KEY, FILES, {"name": "add"})
    return cache


def file_of(cache: CacheDir, key: str = KEY) -> Path:
    return next(Path(entry.path) for entry in cache.entries() if entry.key == key)


def modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(path.lstat().st_mode) for path in root.rglob("*")}


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o777])
def test_folders_and_files_are_the_users_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        cache = CacheDir(tmp_path / "a" / "b", max_size=10**6)
        cache.put(KEY, FILES)
        assert cache.get(KEY) == FILES
    finally:
        os.umask(before)
    found = modes(tmp_path)
    assert len(found) == 5
    assert all(mode == (0o600 if "." in name or name.endswith("written") else 0o700) for name, mode in found.items())


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_directory_that_others_can_write_to_is_not_used(cache, mode):
    Path(cache.directory).chmod(mode)
    again = CacheDir(cache.directory)
    with pytest.warns(CacheWarning, match="can be written by others"):
        assert again.get(KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.put(OTHER, FILES)
    assert again.get(OTHER) == FILES
    assert [entry.key for entry in cache.entries()] == [KEY]
    Path(cache.directory).chmod(0o700)
    assert again.get(KEY) == FILES


@as_root
def test_a_directory_of_another_user_is_not_used(cache):
    os.chown(cache.directory, 1234, 1234)
    again = CacheDir(cache.directory)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        again.put(OTHER, FILES)
    assert again.get(KEY) is None
    assert again.get(OTHER) == FILES


@as_root
def test_an_entry_of_another_user_is_not_used(cache):
    os.chown(file_of(cache), 1234, 1234)
    assert cache.get(KEY) is None
    assert not list(cache.entries())


def test_an_entry_that_others_can_write_to_is_not_used(cache):
    file_of(cache).chmod(0o606)
    assert cache.get(KEY) is None


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_full_directory(path: Path) -> None:
    make_directory(path)
    (path / "file").write_bytes(b"")


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link_to(target: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return make


def link_to_itself(path: Path) -> None:
    """An entry as good as any, behind a link."""
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


IN_ITS_PLACE = {
    "a directory": make_directory,
    "a directory with files": make_full_directory,
    "a FIFO": make_fifo,
    "a link to endless zeros": link_to("/dev/zero"),
    "a link to nothing": link_to("/nonexistent"),
    "a link to a whole entry": link_to_itself,
    "a file that cannot be read": lambda path: path.chmod(0o000),
}


@pytest.mark.parametrize("what", IN_ITS_PLACE)
@pytest.mark.filterwarnings("ignore::mltriton.runtime.cache.CacheWarning")
def test_what_is_no_file_is_no_entry(cache, what):
    IN_ITS_PLACE[what](file_of(cache))
    if what != "a file that cannot be read" or os.geteuid() != 0:
        assert cache.get(KEY) is None
    cache.put(KEY, FILES)
    assert cache.get(KEY) == FILES
    cache.put(OTHER, FILES)
    assert CacheDir(cache.directory).get(OTHER) == FILES


def test_an_entry_counts_for_its_own_key_only(cache):
    cache.put(OTHER, {"object": b"other"})
    shutil.copy(file_of(cache), file_of(cache, OTHER))
    assert cache.get(OTHER) is None
    assert cache.get(KEY) == FILES


def test_a_planted_link_is_not_written_through(tmp_path, monkeypatch):
    """Even where somebody guessed the name of the temporary file."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    cache = CacheDir(tmp_path / "cache")
    cache.put(KEY, FILES)
    folder = file_of(cache).parent
    (folder / f".{file_of(cache).stem}.{bytes(8).hex()}{private_files.TEMPORARY}").symlink_to(victim)
    with pytest.warns(CacheWarning, match="exists"):
        cache.put(KEY, {"object": b"new"})
    assert victim.read_text() == "precious"
    assert cache.get(KEY) == {"object": b"new"}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_is_found_or_harmless(tmp_path_factory, data):
    """Bytes changed, taken out, put in or moved: the entry is whole or absent."""
    check_damage(tmp_path_factory, data)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None)
@given(st.data())
def test_any_damage_is_found_or_harmless_in_many_entries(tmp_path_factory, data):
    check_damage(tmp_path_factory, data)


def check_damage(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    cache = CacheDir(tmp_path_factory.getbasetemp() / "damaged")
    cache.put(KEY, FILES, {"name": "add"})
    path = file_of(cache)
    image = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(image))] * 2)))
        image[start:stop] = data.draw(st.binary(max_size=40) | st.just(bytes(image[:start][-40:])))
    path.write_bytes(image)
    assert cache.get(KEY) in (None, FILES)


HEADERS = [
    None,
    [],
    {"key": KEY},
    {"key": KEY, "metadata": {}, "files": []},
    {"key": KEY, "metadata": {}, "files": {"object": "x"}},
    {"key": KEY, "metadata": {}, "files": {"object": 10**9}},
    {"key": KEY, "metadata": 3, "files": {}},
]


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_a_header_that_says_something_else_is_no_entry(cache, header, monkeypatch):
    """Its checksum is right."""
    path = file_of(cache)
    monkeypatch.setattr("mltriton.runtime.cache.packed", lambda _: packed(header))
    cache.put(KEY, FILES)
    monkeypatch.undo()
    assert path.exists()
    assert cache.get(KEY) is None


def test_a_full_disk_is_tried_again(cache, monkeypatch):
    """What could not be written meanwhile is written then."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.warns(CacheWarning, match="No space left") as caught:
        patched.setattr(private_files, "write", full)
        cache.put(OTHER, FILES)
        cache.put(digest(3), FILES)
    assert len(caught) == 1
    assert cache.get(OTHER) == FILES
    cache.put(digest(4), FILES)
    again = CacheDir(cache.directory)
    assert all(again.get(key) == FILES for key in (KEY, OTHER, digest(3), digest(4)))


def test_files_may_not_grow(run_script, tmp_path):
    """A limit on the size of files stands for a full disk: nothing half-written is left, and smaller entries go on."""
    code = """
import resource, signal, sys, warnings
from pathlib import Path
from mltriton.runtime.cache import CacheDir, digest
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
warnings.simplefilter("ignore")
cache = CacheDir(Path(sys.argv[1] if len(sys.argv) > 1 else PLACE))
cache.put(digest(1), {"a": bytes(5000)})
cache.put(digest(2), {"a": bytes(100)})
print(cache.get(digest(1)) == {"a": bytes(5000)}, len(list(cache.entries())))
"""
    assert run_script(f"PLACE = {str(tmp_path)!r}\n{code}") == "True 1\n"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_the_limit_holds_for_all_processes_together(run_script, tmp_path):
    code = f"""
import os
from pathlib import Path
from mltriton.runtime.cache import CacheDir, digest
cache = CacheDir(Path({str(tmp_path)!r}), max_size=100_000)
for number in range(20):
    cache.put(digest(os.getpid(), number), {{"a": bytes(4000)}})
"""
    for _ in range(3):
        run_script(code)
        assert CacheDir(tmp_path).size() <= 100_000
    assert CacheDir(tmp_path).size() > 50_000


@pytest.mark.parametrize("unknown", [True, False])
def test_without_a_home_kernels_are_kept_in_memory(monkeypatch, unknown):
    for name in ("MLTRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = "~" if unknown else "/proc/nonexistent"  # What nobody knows stays as it is.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home))
    cache = default_cache()
    cache._has_warned = False
    with pytest.warns(CacheWarning, match="has no place" if unknown else "cannot be written"):
        cache.put(KEY, FILES)
    assert cache.get(KEY) == FILES
    cache.clear()


def test_a_relative_place_of_caches_does_not_count(monkeypatch, tmp_path):
    monkeypatch.delenv("MLTRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert config.cache_dir() == str(tmp_path / ".cache" / "mltriton")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert config.cache_dir() == str(tmp_path / "xdg" / "mltriton")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLTRITON_CACHE_DIR", "chosen")
    assert config.cache_dir() == str(tmp_path / "chosen")
    monkeypatch.setenv("MLTRITON_CACHE_DIR", "~nobody_at_all/x")
    with pytest.raises(config.ConfigError, match="MLTRITON_CACHE_DIR"):
        config.cache_dir()


DAMAGE: dict[str, Callable[[dict[str, bytes], str], dict[str, bytes]]] = {
    "no files": lambda files, name: {},
    "nothing that was packed": lambda files, name: files | {"metadata": b"{", name: b""},
    "no object": lambda files, name: {other: data for other, data in files.items() if other != name},
    "other bytes": lambda files, name: files | {name: bytes(3000)},
    "half an object": lambda files, name: files | {name: files[name][: len(files[name]) // 2]},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_means_compiling_again(tmp_path, monkeypatch, damage):
    """Also where its checksum is right: of the kernel, and of the launcher."""
    from mltriton.runtime.native import library

    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))

    def launch() -> bool:
        @triton.jit
        def add(x, o, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(o + i, tl.load(x + i) + 3)

        x, o = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
        add[(1,)](x, o, N=16)
        assert (o == x + 3).all()
        if library.machine():
            library.load.__wrapped__()
        return add.warmup(x, o, N=16, grid=(1,)).metadata.from_cache

    assert [launch(), launch()] == [False, True]
    cache = CacheDir(tmp_path)
    for entry in list(cache.entries()):
        files = cache.get(entry.key)
        assert files is not None
        cache.put(entry.key, DAMAGE[damage](files, "object" if "object" in files else "image"))
    assert [launch(), launch()] == [False, True]


def test_saved_programs_are_the_users_own(tmp_path, monkeypatch):
    import tempfile

    from mltriton.runtime.private_files import save_text

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    saved = save_text("module", "stem", suffix=".ll")
    assert saved is not None
    assert saved.read_text() == "module"
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700
    victim = tmp_path / "victim"
    victim.write_text("precious")
    saved.unlink()
    saved.symlink_to(victim)
    assert save_text("module", "stem", suffix=".ll") == saved
    assert victim.read_text() == "precious"
    assert not saved.is_symlink()
    saved.parent.chmod(0o777)
    elsewhere = save_text("module", "stem")
    assert elsewhere is not None
    assert elsewhere.parent != saved.parent
    assert stat.S_IMODE(elsewhere.parent.stat().st_mode) == 0o700
    shutil.rmtree(saved.parent)
    saved.parent.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    elsewhere = save_text("module", "stem")
    assert elsewhere is not None
    assert elsewhere.parent != saved.parent


def test_the_key_covers_every_source_file_of_the_compiler(monkeypatch, tmp_path):
    from mltriton.runtime import fingerprint

    inner = tmp_path / "passes" / "intrinsic"
    inner.mkdir(parents=True)
    (inner / "nests.py").write_text("a = 1")
    (tmp_path / "pool.ll").write_text("")
    (tmp_path / "kernels").mkdir()

    def known() -> list[str]:
        found = sorted(fingerprint.source_files(str(tmp_path), frozenset({"kernels"})))
        with monkeypatch.context() as patch:
            patch.setattr(os, "supports_fd", set[object]())
            assert sorted(fingerprint.source_files(str(tmp_path), frozenset({"kernels"}))) == found
        return found

    seen = [known()]
    os.utime(inner / "nests.py", ns=(1, 1))  # edited, to as many bytes
    seen.append(known())
    (tmp_path / "pool.ll").write_text("; longer")
    os.utime(tmp_path / "pool.ll", ns=(1, 1))
    seen.append(known())
    (inner / "nests.py").rename(inner / "nest.py")
    seen.append(known())
    (inner / "new.py").write_text("")
    seen.append(known())
    assert len({*map(tuple, seen)}) == len(seen)
    (tmp_path / "kernels" / "gemm.py").write_text("")
    (inner / "notes.txt").write_text("")
    assert known() == seen[-1]


def test_the_key_covers_what_makes_the_code_that_is_kept():
    from mltriton.runtime import fingerprint

    root = Path(triton.__file__).parent
    found = {line.split()[0] for line in fingerprint.source_files(str(root), fingerprint._NOT_COMPILER)}
    assert {f"/runtime/native/{name}.py" for name in ("linker", "elf", "relocations", "frames", "images")} <= found
    native = {line.split()[0] for line in fingerprint.source_files(str(root / "runtime" / "native"))}
    parts = {"sources/pool.py", "sources/python.pyi", "translation/calls.py", "ir/cuda.ll", "linker.py"}
    assert {f"/{part}" for part in parts} <= native


def test_the_key_covers_llvm_and_the_processor(monkeypatch, tmp_path):
    from mltriton.runtime import fingerprint
    from mltriton.targets.cpu import features, target

    def with_llvmlite(text: str) -> str:
        package = tmp_path / "llvmlite"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "_version.py").write_text(text)
        fingerprint.llvm_version.cache_clear()
        fingerprint.compiler_fingerprint.cache_clear()
        return fingerprint.compiler_fingerprint()

    monkeypatch.syspath_prepend(str(tmp_path))
    assert with_llvmlite("version = 1") != with_llvmlite("version = 2")
    monkeypatch.undo()
    fingerprint.llvm_version.cache_clear()
    fingerprint.compiler_fingerprint.cache_clear()

    def processor() -> str:
        return target._processor.__wrapped__()

    known = processor()
    monkeypatch.setattr(target, "_CPUINFO", str(tmp_path / "nothing"))
    plain = processor()
    monkeypatch.setattr(features, "host", lambda: features.FEATURES["sse"])
    assert len({known, plain, processor()}) == 3
