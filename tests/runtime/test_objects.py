"""Loading object files: our linker and LLVM's give the same addresses to call, and refuse the same files."""

from __future__ import annotations

import ctypes
import gc
import mmap
import platform
import random
import struct
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from mltriton.runtime.native import objects, relocations
from mltriton.runtime.native.elf import ElfError, ElfObject
from mltriton.runtime.native.images import LinkedImage
from mltriton.runtime.native.launcher import NativeKernel
from mltriton.runtime.native.linker import linked
from mltriton.runtime.native.objects import ObjectLoadError, load_elf, load_object, load_with_llvm
from mltriton.runtime.native.relocations import AARCH64, X86_64, this_machine

from .native_kernels import COUNT, TRIPLE, compile_body, make_kernel

with_linker = pytest.mark.skipif(this_machine() is None, reason="the linker has no table for this machine")

# Code, constants, a jump table, variables with and without a value, and the C library's functions and variables.
PROGRAM = """
@counter = global i64 5
@zeros = internal global [1000 x i64] zeroinitializer
@table = constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@names = constant [2 x ptr] [ptr @table, ptr @counter]
@environ = external global ptr

declare i64 @labs(i64)

define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %slot = getelementptr i64, ptr @zeros, i64 %new
  store i64 %new, ptr %slot
  %back = load i64, ptr %slot
  ret i64 %back
}
define i64 @look_up(i64 %i) {
  %array = load ptr, ptr @names
  %at = getelementptr i64, ptr %array, i64 %i
  %value = load i64, ptr %at
  ret i64 %value
}
define i64 @distance(i64 %i) {
  %value = call i64 @labs(i64 %i)
  ret i64 %value
}
define i64 @sees_environment() {
  %environment = load ptr, ptr @environ
  %null = icmp eq ptr %environment, null
  %value = zext i1 %null to i64
  ret i64 %value
}
define i64 @branch(i64 %i) {
  switch i64 %i, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %e ]
a:
  %x = call i64 @labs(i64 -7)
  ret i64 %x
b:
  %y = call i64 @count()
  ret i64 %y
c:
  %z = call i64 @look_up(i64 3)
  ret i64 %z
d:
  ret i64 -1
e:
  %w = call i64 @sees_environment()
  ret i64 %w
other:
  ret i64 0
}
"""
NAMES = ["count", "look_up", "distance", "sees_environment", "branch"]


def compile_text(text: str, code_model: str = "default", relocation: str = "pic") -> bytes:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(opt=2, reloc=relocation, codemodel=code_model)
    module = binding.parse_assembly(text)
    module.verify()
    return machine.emit_object(module)


@pytest.fixture(params=["elf", "llvm"])
def load(request: pytest.FixtureRequest) -> Callable[..., objects.LoadedObject]:
    if request.param == "elf" and this_machine() is None:
        pytest.skip("the linker has no table for this machine")
    if request.param == "llvm" and platform.machine() == "aarch64":
        pytest.skip("LLVM's own linker ends the process where sections lie far apart")
    return {"elf": load_elf, "llvm": load_with_llvm}[request.param]


@pytest.mark.parametrize("code_model", ["default", "small", "large"])
def test_a_loaded_program_runs(load, code_model):
    loaded = load(compile_text(PROGRAM, code_model), NAMES)
    function = {name: ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.addresses[name]) for name in NAMES}
    assert [function["count"](0) for _ in range(3)] == [6, 7, 8]
    assert [function["look_up"](i) for i in range(4)] == [10, 20, 30, 40]
    assert function["distance"](-(10**12)) == 10**12
    assert function["sees_environment"](0) == 0
    assert [function["branch"](i) for i in range(6)] == [7, 9, 40, -1, 0, 0]


def test_objects_with_the_same_symbols_do_not_meet(load):
    image = compile_text(PROGRAM)
    functions = []
    for _ in range(3):
        loaded = load(image, ["count"])
        functions.append((loaded, ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.addresses["count"])))
    assert [function() for _, function in functions for _ in range(2)] == [6, 7, 6, 7, 6, 7]


def test_missing_symbols(load, capfd):
    with pytest.raises(ObjectLoadError, match="no_such_symbol"):
        load(compile_body(COUNT), ["no_such_symbol"])
    undefined = "declare void @absent()\ndefine void @kernel() {\n  call void @absent()\n  ret void\n}"
    with pytest.raises(ObjectLoadError) as error:
        load(compile_text(undefined), ["kernel"])
    assert "absent" in str(error.value) + capfd.readouterr().err  # LLVM writes which one to standard error.


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"not an object" * 20, b"\x7fELF\x02\x01" + bytes(100)])
def test_what_is_no_object_file(image):
    with pytest.raises(ObjectLoadError):
        NativeKernel(image)


@pytest.mark.skipif(platform.machine() == "aarch64", reason="LLVM's own linker is not for it")
def test_load_object_takes_what_the_machine_needs(monkeypatch):
    monkeypatch.setattr(relocations, "this_machine", lambda: None)
    assert type(load_object(compile_body(COUNT), ["kernel"])._owner) is not LinkedImage
    monkeypatch.undo()
    is_linked_here = type(load_object(compile_body(COUNT), ["kernel"])._owner) is LinkedImage
    assert is_linked_here == (this_machine() is not None)


@with_linker
def test_weak_symbols_may_be_absent():
    text = """
@absent = extern_weak global i8
define i64 @is_null() {
  %null = icmp eq ptr @absent, null
  %value = zext i1 %null to i64
  ret i64 %value
}
"""
    loaded = load_elf(compile_text(text), ["is_null"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.addresses["is_null"])() == 1


@with_linker
def test_words_that_hold_addresses_of_the_process():
    text = """
@environ = external global ptr
declare i64 @labs(i64)
@kept = global [3 x ptr] [ptr @labs, ptr getelementptr (i8, ptr @environ, i64 24),
                          ptr getelementptr (i8, ptr @kept, i64 8)]
"""
    loaded = load_elf(compile_text(text), ["kept"])
    process = ctypes.CDLL(None)
    labs = ctypes.cast(process.labs, ctypes.c_void_p).value
    environ = ctypes.addressof(ctypes.c_void_p.in_dll(process, "environ"))
    kept = loaded.addresses["kept"]
    assert list((ctypes.c_uint64 * 3).from_address(kept)) == [labs, environ + 24, kept + 8]


@with_linker
def test_an_image_is_loaded_as_it_was_made_or_refused(monkeypatch):
    image = linked(compile_text(PROGRAM))
    assert load_object(image, ["count"]).addresses
    source = random.Random(1)
    for place in [*range(40), *(source.randrange(len(image)) for _ in range(200))]:
        damaged = bytearray(image)
        damaged[place] ^= 1 << source.randrange(8)
        with pytest.raises(ObjectLoadError):
            load_object(bytes(damaged), ["count"])
    for length in range(0, len(image), 97):
        with pytest.raises(ObjectLoadError):
            load_object(image[:length], ["count"])
    monkeypatch.setattr(platform, "machine", lambda: "another")
    with pytest.raises(ObjectLoadError, match="the image is for"):
        load_object(image, ["count"])
    monkeypatch.undo()
    monkeypatch.setattr(mmap, "PAGESIZE", 2 * mmap.PAGESIZE)
    with pytest.raises(ObjectLoadError, match="with pages of"):
        load_object(image, ["count"])


@with_linker
def test_no_memory_is_writable_and_executable():
    loaded = load_elf(compile_text(PROGRAM), ["count", "counter", "table"])
    permissions = {name: permissions_at(address) for name, address in loaded.addresses.items()}
    assert permissions["count"] == "r-xp"
    assert permissions["counter"] == "rw-p"
    assert permissions["table"] in ("r--p", "r-xp")  # An emulator reports neighbours that nobody writes as one.


def permissions_at(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions = line.split()[:2]
        start, end = (int(text, 16) for text in span.split("-"))
        if start <= address < end:
            return permissions
    return ""


@with_linker
def test_memory_goes_with_the_object():
    loaded = load_elf(compile_text(PROGRAM), ["count"])
    address = loaded.addresses["count"]
    image = weakref.ref(loaded._owner)
    assert permissions_at(address) == "r-xp"
    del loaded
    gc.collect()
    assert image() is None
    assert permissions_at(address) != "r-xp"


@pytest.mark.skipif(this_machine() is not X86_64, reason="elsewhere such code reaches all that it names")
def test_code_that_is_not_position_independent_is_refused():
    with pytest.raises(ObjectLoadError, match=r"out of reach|relocation type \d+ is not supported"):
        load_elf(compile_text(PROGRAM, relocation="static"), ["count"])


@with_linker
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("@x = thread_local global i32 1\ndefine ptr @kernel() {\n  ret ptr null\n}", "thread-local"),
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } "
            "{ i32 65535, ptr @kernel, ptr null }]\ndefine void @kernel() {\n  ret void\n}",
            "functions called when the object is loaded",
        ),
    ],
)
def test_what_the_linker_does_not_support_is_named(text, problem):
    with pytest.raises(ObjectLoadError, match=problem):
        load_elf(compile_text(text), ["kernel"])


@with_linker
def test_damaged_objects_are_refused_or_harmless():
    """No truncation and no damage to the tables may crash the process while an object is linked."""
    image = compile_text(PROGRAM)
    for length in range(0, len(image), 7):
        with pytest.raises(ElfError):
            ElfObject(image[:length], this_machine().number)
    source = random.Random(0)
    [tables] = struct.unpack_from("<Q", image, 40)
    places = [*range(64), *range(tables, len(image))]
    for section in ElfObject(image, this_machine().number).sections:
        if section.kind in (2, 4):  # Symbols, relocations.
            start = image.index(bytes(section.data))
            places += range(start, start + section.size)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(image)
        damaged[source.choice(places)] = source.randrange(256)
        try:
            linked(bytes(damaged))
        except ElfError:
            refused += 1
    assert refused > 500


def test_many_objects_come_and_go():
    for _ in range(300):
        kernel = make_kernel(COUNT)
    assert kernel.address


# Words of an assembler: bl .+8, bl .-4, adrp x0, .+0x12345000, add x0, x0, #0xabc, ldr x0, [x0, #8].
@pytest.mark.parametrize(
    ("kind", "empty", "value", "word"),
    [
        (283, 0x94000000, 8, 0x94000002),
        (283, 0x94000000, -4, 0x97FFFFFF),
        (275, 0x90000000, 0x12345000, 0xB0091A20),
        (277, 0x91000000, 0x7FABC, 0x912AF000),
        (312, 0xF9400000, 0x1008, 0xF9400400),
    ],
)
def test_fields_of_aarch64(kind, empty, value, word):
    memory = mmap.mmap(-1, 16)
    memory[4:8] = struct.pack("<I", empty)
    AARCH64.kinds[kind].field.write(memory, 4, value)
    assert struct.unpack_from("<I", memory, 4)[0] == word


@pytest.mark.parametrize(("kind", "value"), [(283, 1 << 27), (283, 2), (275, 1 << 32), (275, 8), (312, 0x1004)])
def test_fields_of_aarch64_refuse_what_does_not_fit(kind, value):
    with pytest.raises(OverflowError):
        AARCH64.kinds[kind].field.write(mmap.mmap(-1, 16), 0, value)
