"""`mltriton aot`: C programs that link kernels and call them, and torch's launcher of shared libraries."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.as_triton.nativert import linked
from mltriton.errors import OptionError, TargetError
from mltriton.targets.cpu.exports import header, launcher_text, named_text, source_of
from mltriton.tools.aot import compile_kernel
from mltriton.tools.c_object import cpu_of, write_c_object
from mltriton.tools.disasm import get_sass

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
RNG = np.random.default_rng(0)


@triton.jit
def scale(x, out, n, by, default: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, (tl.load(x + i, i < n) * by + default).to(out.dtype.element_ty), i < n)


@triton.jit
def product(a, b, out, M, N, K, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    columns = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        left = tl.load(a + rows * K + k + tl.arange(0, B)[None, :])
        total += tl.dot(left, tl.load(b + (k + tl.arange(0, B)[:, None]) * N + columns))
    tl.store(out + rows * N + columns, tl.sort(total))


@triton.jit
def asserted(x):
    tl.device_assert(tl.load(x) > 0)


@triton.jit
def words(free, free_, virtual, pair, pair_0, int32_t, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.load(free + i) + tl.load(free_ + i) * tl.load(pair[0] + i) + tl.load(pair_0 + i) * int32_t
    tl.store(virtual + i, total, i < n)


PROGRAM = r"""
#include <stdio.h>
#include "scale.h"
#include "second.h"

static int read_all(const char *file, void *to, size_t bytes) {
    FILE *f = fopen(file, "rb");
    int right = f && fread(to, 1, bytes, f) == bytes;
    if (f) fclose(f);
    return right;
}

int main(void) {
    enum { N = 1000, M = 128 };
    static float x[N];
    static uint16_t out[N];
    static float a[M * M] __attribute__((aligned(64))), b[M * M] __attribute__((aligned(64))), c[M * M];
    if (!read_all("x", x, sizeof x) || !read_all("a", a, sizeof a) || !read_all("b", b, sizeof b)) return 1;
    if (scale(1, 8, 1, x, out, N, -2.5f)) return 2;
    fwrite(out, 1, sizeof out, stdout);
    if (second(2, 2, 1, a, b, c, M, M, M)) return 3;
    fwrite(c, 1, sizeof c, stdout);
#ifdef _OPENMP
    for (int i = 0; i < M * M; i++) c[i] = 0;
    if (second_parallel(2, 2, 1, a, b, c, M, M, M)) return 4;
    fwrite(c, 1, sizeof c, stdout);
#endif
    return 0;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))


def built(folder: Path, *flags: str) -> bytes:
    """What a C program prints that calls two kernels."""
    (folder / "main.c").write_text(PROGRAM)
    objects = [str(file) for file in sorted(folder.glob("*.o"))]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    subprocess.run(["cc", *warnings, *flags, "main.c", *objects, "-o", "main"], cwd=folder, check=True)
    return subprocess.run(["./main"], cwd=folder, check=True, capture_output=True).stdout


@needs_cc
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_parameters_have_names_that_c_has_no_meaning_for(tmp_path, compiler):
    signature = "*fp32, *fp32, *fp32, (*fp32, i32), *fp32, i32, i32, 64"
    header_file, _ = write_c_object(triton.compile(words, signature=signature), tmp_path)
    call = "words(1, 1, 1, a, b, c, d, 1, e, 2, 3)"
    program = f'#include "words.h"\nint check(float *a, float *b, float *c, float *d, float *e) {{ return {call}; }}\n'
    file = tmp_path / ("check.c" if compiler == "cc" else "check.cpp")
    file.write_text(program)
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-fopenmp", "-c", file.name], cwd=tmp_path, check=True)
    names = re.findall(
        r"(\w+)[,)]", next(line for line in header_file.read_text().splitlines() if "int words(" in line)
    )
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["register", "exp", "printf", "class", "main", "free"])
def test_functions_have_names_that_c_has_no_meaning_for(tmp_path, name):
    with pytest.raises(OptionError, match=f"C has a meaning for {name}"):
        write_c_object(triton.compile(scale, signature="*fp32, *fp16, i32, fp32, 1.5, 128"), tmp_path, name)
    assert not list(tmp_path.glob("*.h"))


@needs_cc
@pytest.mark.parametrize("flags", [(), ("-fopenmp",)])
def test_c_programs_call_kernels(tmp_path, flags):
    x = RNG.standard_normal(1000).astype(np.float32)
    a, b = (RNG.standard_normal((128, 128)).astype(np.float32) for _ in range(2))
    for name, array in (("x", x), ("a", a), ("b", b)):
        array.tofile(tmp_path / name)
    first = triton.compile(scale, signature="*fp32, *fp16, i32, fp32, 1.5, 128")
    second = triton.compile(product, signature="*fp32:16, *fp32:16, *fp32, i32, i32, i32, 64", target="cpu:avx2")
    files = write_c_object(first, tmp_path)
    write_c_object(second, tmp_path, "second")
    assert [file.name for file in files] == ["scale.h", "scale.o"]
    printed = built(tmp_path, *flags)
    wanted = (x * np.float32(-2.5) + np.float32(1.5)).astype(np.float16)
    np.testing.assert_array_equal(np.frombuffer(printed[:2000], np.float16), wanted)
    blocks = (a.astype(np.float64) @ b).reshape(128, 2, 64)
    wanted = np.sort(blocks, -1).reshape(128, 128)
    for part in np.frombuffer(printed[2000:], np.float32).reshape(-1, 128, 128):
        np.testing.assert_allclose(part, wanted, rtol=1e-4, atol=1e-4)
    assert len(printed) == 2000 + (2 if flags else 1) * 4 * 128 * 128


@needs_cc
def test_the_program_of_the_documentation(tmp_path):
    root = Path(__file__).parents[2]
    code, program = (
        re.search(rf"```{language}\n(.*?)```", (root / page).read_text(encoding="utf-8"), re.DOTALL)[1]
        for language, page in (("python", "README.md"), ("c", "docs/existing-programs.md"))
    )
    (tmp_path / "add.py").write_text(code)
    (tmp_path / "main.c").write_text(program)
    kernel = compile_kernel(f"{tmp_path / 'add.py'}:add", "*fp32:16, *fp32:16, *fp32:16, i32, 1024", target="cpu")
    write_c_object(kernel, tmp_path)
    command = ["cc", "-O2", "-Wall", "-Werror", "main.c", "add.o", "-o", "program", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "8997\n"


def test_the_header_says_what_is_promised():
    kernel = triton.compile(scale, signature="*fp32:16, *bf16, i32:16, fp64, 1, 128")
    text = header(source_of(kernel), "scale")
    assert "int scale(uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, const float *x, uint16_t *out" in text
    assert "int32_t n, double by);" in text and "default = 1, BLOCK = 128" in text
    assert "x: aligned to 16 bytes" in text and "n: a multiple of 16" in text and "out: " not in text


@needs_cc
def test_torchs_launcher(tmp_path):
    """Tensors by their address, scalars by their place, nothing for constants."""
    kernel = source_of(triton.compile(scale, signature="*fp32, *fp32, i32, fp64, 1.5, 128"))
    texts = {"kernel.so": named_text(kernel, "scale", ""), "launcher.so": launcher_text(kernel)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(linked(cpu_of(kernel).object_of(text)))
    run = ctypes.CDLL(str(tmp_path / "launcher.so")).run_from_nativert
    run.argtypes = [ctypes.c_uint32] * 3 + [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    x = RNG.standard_normal(1000).astype(np.float32)
    out, count, by = np.zeros_like(x), ctypes.c_int64(1000), ctypes.c_float(2.0)
    places = [x.ctypes.data, out.ctypes.data, ctypes.addressof(count), ctypes.addressof(by), None, None]
    address = ctypes.cast(ctypes.CDLL(str(tmp_path / "kernel.so")).scale, ctypes.c_void_p)
    run(1, 8, 1, 1, (ctypes.c_void_p * 6)(*places), address)
    np.testing.assert_allclose(out, x * 2 + 1.5, rtol=1e-6)


def test_mistakes(tmp_path, monkeypatch):
    kernel = triton.compile(scale, signature="*fp32, *fp16, i32, fp32, 1.5, 128")
    with pytest.raises(OptionError, match=r"need a name of C\nexpected letters, digits, _, found two words"):
        write_c_object(kernel, tmp_path, "two words")
    with pytest.raises(OptionError, match="asserted has assertions"):
        write_c_object(triton.compile(asserted, signature="*fp32", debug=True), tmp_path)
    with pytest.raises(TargetError, match="C programs call kernels for a CPU"):
        write_c_object(triton.compile(scale, signature="*fp32, *fp16, i32, fp32, 1.5, 128", target="generic"), tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(TargetError, match="a shared library needs a C compiler"):
        linked(b"")


def test_disassembly():
    kernel = triton.compile(scale, signature="*fp32, *fp16, i32, fp32, 1.5, 128")
    assert get_sass(kernel) == kernel.asm["asm"]


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
def test_disassembly_of_a_file(tmp_path):
    kernel = triton.compile(scale, signature="*fp32, *fp16, i32, fp32, 1.5, 128")
    _, file = write_c_object(kernel, tmp_path)
    assert "<scale_programs>" in get_sass(file) and "<scale_kernel>:" not in get_sass(file, "scale_programs")
    (tmp_path / "text").write_text("no object")
    with pytest.raises(OptionError, match="objdump cannot read"):
        get_sass(tmp_path / "text")
