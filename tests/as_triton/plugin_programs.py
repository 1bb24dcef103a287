"""Programs for the real Triton with mltriton as its backend `cpu`, against torch: `python plugin_programs.py`.

Prints a line for each. Not a test itself: it needs a process in which the real triton is what `import triton` gives.
"""

from __future__ import annotations

import re

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

torch.manual_seed(0)
X, Y = torch.randn(64), torch.randn(64)
I = torch.randint(0, 64, (64,), dtype=torch.int32)  # noqa: E741
CHECKS = {}
SEEN = set()  # operations of upstream's programs


def check(fn):
    CHECKS[fn.__name__] = fn
    return fn


def run(kernel, *arguments, out=None, grid=(1,)):
    out = torch.zeros(64) if out is None else out
    compiled = kernel[grid](*arguments, out, B=64)
    SEEN.update(re.findall(r"(?<![\w.!#])tt\.[a-z_.]+[a-z]", compiled.asm["ttir"]))
    return out


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def add_kernel(x, y, n, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, twice(tl.load(x + i, i < n)) + tl.load(y + i, i < n), i < n)


@check
def add():
    x, y, out = torch.randn(1000), torch.randn(1000), torch.zeros(1000)
    return run(add_kernel, x, y, 1000, out=out, grid=(16,)), x * 2 + y


@triton.jit
def sort_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.sort(tl.load(x + i)), 0))


@check
def sort_and_scan():
    return run(sort_kernel, X), X.sort().values.cumsum(0)


@triton.jit
def gather_kernel(x, j, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(j + i), 0))


@check
def gather():
    return run(gather_kernel, X, I), X[I.long()]


@triton.jit
def dot_kernel(a, b, out, B: tl.constexpr):
    p = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + p, tl.dot(tl.load(a + p), tl.load(b + p)))


@check
def dot():
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    return run(dot_kernel, a, b, out=torch.zeros(64, 64)), a @ b


@triton.jit
def while_kernel(x, n, out, B: tl.constexpr):
    i = tl.arange(0, B)
    value, j = tl.load(x + i), 0
    while j < n:
        value = value * 2
        j += 1
    tl.store(out + i, value)


@check
def while_loop():
    return run(while_kernel, X, 3), X * 8


@triton.jit
def math_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    some = tl.exp(v) + tl.sin(v) + tl.erf(v) + tl.floor(v) + tl.fma(v, v, v) + tl.sqrt_rn(tl.abs(v))
    tl.store(out + i, some + tl.div_rn(v, 3.0) + tl.clamp(v, -0.5, 0.5) + tl.log2(tl.abs(v) + 1))


@check
def math():
    some = X.exp() + X.sin() + X.erf() + X.floor() + X * X + X + X.abs().sqrt()
    return run(math_kernel, X), some + X / 3 + X.clamp(-0.5, 0.5) + (X.abs() + 1).log2()


@triton.jit
def atomic_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out + i % 4, tl.load(x + i))
    tl.atomic_max(out + 8 + i % 4, tl.load(x + i))


@check
def atomics():
    expected = torch.zeros(64)
    expected[:4], expected[8:12] = X.view(-1, 4).sum(0) * 2, X.view(-1, 4).amax(0).clamp(min=0)
    return run(atomic_kernel, X, grid=(2,)), expected


@triton.jit
def split_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    left, right = tl.split(tl.reshape(tl.interleave(tl.load(x + i), tl.load(y + i)), (B, 2)))
    tl.store(out + i, left - right)


@check
def join_and_split():
    return run(split_kernel, X, Y), X - Y


@triton.jit
def turn_kernel(x, out, B: tl.constexpr):
    p = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    v = tl.load(x + p)
    tl.store(out + p, tl.trans(v) + tl.flip(v, 1) + tl.max(v, 1)[:, None])


@check
def turned():
    m = X.view(8, 8)
    return run(turn_kernel, X).view(8, 8), m.T + m.flip(1) + m.amax(1, keepdim=True)


@triton.jit
def tuple_kernel(pair, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(pair[0] + i) * pair[1] + tl.load(pair[2] + i))


@check
def tuples():
    return run(tuple_kernel, (X, 3, Y)), X * 3 + Y


@triton.jit
def descriptor_kernel(x, out, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [8, 8], [8, 1], [4, 8])
    target = tl.make_tensor_descriptor(out, [8, 8], [8, 1], [4, 8])
    target.store([4, 0], source.load([0, 0]) * 2)


@check
def descriptors():
    expected = torch.zeros(64)
    expected[32:] = X[:32] * 2
    return run(descriptor_kernel, X), expected


@triton.jit
def narrow_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(tl.float8e5).to(tl.float32) + tl.load(x + i).to(tl.bfloat16).to(tl.float32))


@check
def narrow_floats():
    return run(narrow_kernel, X), X.to(torch.float8_e5m2).float() + X.bfloat16().float()


@triton.jit
def early_kernel(x, n, out, B: tl.constexpr):
    p = tl.program_id(0)
    if p >= n:
        return
    i = tl.arange(0, B)
    tl.store(out + p * B + i, tl.load(x + i) * p)


@check
def early_return():
    found = run(early_kernel, X, 3, out=torch.zeros(256), grid=(4,))
    return found.view(4, 64), torch.stack([X * 0, X, X * 2, X * 0])


@triton.jit
def chosen(a, n):
    if n > 3:
        return a * 2, n
    return a + 1, n * 2


@triton.jit(noinline=True)
def apart(a, n):
    if n > 3:
        return a * 2
    return a + 1


@triton.jit
def branches_kernel(x, n, out, B: tl.constexpr):
    i = tl.arange(0, B)
    value, factor = chosen(tl.load(x + i), n)
    tl.store(out + i, value * factor + apart(n, n))


@check
def returns_in_branches():
    found = torch.stack([run(branches_kernel, X, n) for n in (2, 5)])
    return found, torch.stack([(X + 1) * 4 + 3, X * 2 * 5 + 10])


@triton.jit
def library_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.tanh(v) + libdevice.pow(tl.abs(v), 1.5) + libdevice.rsqrt(tl.abs(v) + 1))


@check
def library():
    return run(library_kernel, X), X.tanh() + X.abs().pow(1.5) + (X.abs() + 1).rsqrt()


@triton.jit
def count_kernel(x, n, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.histogram(tl.load(x + i), B, mask=i < n))


@check
def histogram():
    return run(count_kernel, I, 50), torch.bincount(I[:50].long(), minlength=64).float()


@triton.jit
def wait_kernel(x, out, B: tl.constexpr):
    tl.atomic_store(out + 1, 3.0)
    tl.debug_barrier()
    tl.store(out + 2, tl.atomic_load(out + 1))
    tl.store(out, tl.atomic_poll(x, 7).to(tl.float32))


def atomic_accesses():
    return run(wait_kernel, torch.full((1,), 7, dtype=torch.int32), out=torch.zeros(3)), torch.tensor([1.0, 3.0, 3.0])


@triton.jit
def host_kernel(desc, out, B: tl.constexpr):
    p = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + p, desc.load([2, 0]))


@check
def host_descriptor():
    expected = torch.zeros(64)
    expected[:32] = X[16:48]
    return run(host_kernel, TensorDescriptor.from_tensor(X.view(8, 8), [4, 8])), expected


@triton.jit
def rows_kernel(x, out, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [8, 16], [16, 1], [1, 16])
    target = tl.make_tensor_descriptor(out, [8, 16], [16, 1], [1, 16])
    target.scatter(source.gather(7 - tl.arange(0, 8), 0), tl.arange(0, 8), 0)


@check
def rows_of_descriptors():
    x = torch.randn(8, 16)
    return run(rows_kernel, x, out=torch.zeros(8, 16)), x.flip(0)


@triton.jit
def scaled_kernel(a, s, b, out, B: tl.constexpr):
    r, c, g = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :], tl.arange(0, 2)[None, :]
    left, right, scale = tl.load(a + r * B + c), tl.load(b + r * B + c), tl.load(s + r * 2 + g)
    tl.store(out + r * B + c, tl.dot_scaled(left, scale, "e5m2", right, scale, "e5m2"))


@check
def scaled_product():
    a, b = (torch.randn(64, 64).to(torch.float8_e5m2) for _ in range(2))
    scale = torch.full((64, 2), 128, dtype=torch.uint8)
    return run(scaled_kernel, a, scale, b, out=torch.zeros(64, 64)), (a.float() * 2) @ (b.float() * 2)


@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128, "waves_per_eu": 2, "kpack": 1})], key=["n"])
@triton.jit
def tuned_kernel(x, n, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)


@check
def autotuned():
    x, out = torch.randn(1000), torch.zeros(1000)
    tuned_kernel[lambda meta: (triton.cdiv(1000, meta["B"]),)](x, 1000, out)
    return out, x * 2


@triton.jit
def compare(a, b):
    if a < b:
        return -1.0
    while a > 4.0:
        a = a / 2
    return a


@triton.jit
def mapped_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.map_elementwise(compare, tl.load(x + i) * 9, tl.load(y + i) * 9))


@check
def map_elementwise():
    a, expected = X * 9, X * 9
    while (expected > 4).any():
        expected = torch.where(expected > 4, expected / 2, expected)
    return run(mapped_kernel, X, Y), torch.where(a < Y * 9, -1.0, expected)


@triton.jit(debug=True)
def apart_kernel(x, j, out, B: tl.constexpr):
    """What the other programs do not use: addresses as numbers, bits, assembly, prints, assertions, a sum of arrays."""
    i = tl.arange(0, B)
    tl.device_assert(tl.load(x + i) < 100)
    if tl.program_id(0) >= tl.num_programs(0):
        tl.device_print("there is one program", i)
    pointer = (x.to(tl.int64) ^ 4).to(tl.pointer_type(tl.float32))
    bits = tl.load(x + i).to(tl.int32, bitcast=True)
    high = tl.umulhi(bits.to(tl.uint32, bitcast=True), 1 << 16).to(tl.int32, bitcast=True)
    both = tl.cat(bits, high, can_reorder=True)
    left, right = tl.split(tl.join(tl.load(j + i), i) * 2)
    tl.device_assert((left < 200) & (right >= 0))
    more = tl.inline_asm_elementwise("leal 1($1), $0", "=r,r", [tl.load(j + i)], tl.int32, is_pure=True, pack=1)
    desc = tl.make_tensor_descriptor(out, [1, B], [B, 1], [1, B])
    total = tl.reshape(tl.sum(both.to(tl.int64), keep_dims=True), [1]).item() // (1 << 20)
    desc.atomic_add([0, 0], (more + total.to(tl.int32)).to(tl.float32)[None, :])
    tl.atomic_cas(out, 0.0, tl.load(pointer))


@check
def other_operations():
    bits = X.view(torch.int32).to(torch.int64)
    total = (bits.sum() + ((bits & 0xFFFFFFFF) >> 16).sum()) // (1 << 20)
    return run(apart_kernel, X, I), (I + 1 + total).float()


if hasattr(tl, "atomic_poll"):  # since 3.9
    check(atomic_accesses)


def main():
    for name, fn in CHECKS.items():
        try:
            found, expected = fn()
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            print(f"{name}: right", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    print("operations:", *sorted(SEEN))
    print(triton.runtime.driver.active.get_current_target().backend)


main()
