"""Tensor descriptors made on the host: launches, specialisation, verify, ahead of time, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, DescriptorError, OptionError
from mltriton.executor import run
from mltriton.tools.tensor_descriptor import TensorDescriptor
from mltriton.tools.verify import verify_kernel

SIGNATURE = "tensordesc<fp32[16,32]>, tensordesc<fp32[16,32]>, 16, 32"
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))


def make_shift():
    @triton.jit
    def shift(source, target, M: tl.constexpr, N: tl.constexpr):
        i, j = tl.program_id(0) * M, tl.program_id(1) * N
        tl.static_assert(source.block_shape[0] == M and source.dtype == target.dtype)
        target.store([i, j], source.load([i, j + 1]) + source.shape[1])

    return shift


def random(*shape, dtype=np.float32):
    return RNG.uniform(-2, 2, shape).astype(dtype)


def shifted(x, padding=0.0):
    """What `shift` computes."""
    result = np.full_like(x, padding)
    result[:, :-1] = x[:, 1:]
    return result + x.dtype.type(x.shape[1])


def descriptor(x, block=(16, 32), **options):
    return TensorDescriptor.from_tensor(x, list(block), **options)


@pytest.mark.parametrize("shape", [(37, 52), (16, 32), (1, 4), (100, 36)])
def test_a_launch_stays_inside_the_shape(shape):
    shift, x = make_shift(), random(*shape)
    whole = np.full((shape[0] + 2, shape[1]), 7, np.float32)
    out = whole[: shape[0]]
    grid = (triton.cdiv(shape[0], 16), triton.cdiv(shape[1], 32))
    for _ in range(2):
        shift[grid](descriptor(x), descriptor(out), 16, 32)
        np.testing.assert_array_equal(out, shifted(x))
        assert (whole[shape[0] :] == 7).all()
        out[:] = 0


def test_a_part_of_an_array():
    x, out = random(40, 64), np.zeros((40, 64), np.float32)
    make_shift()[(2, 1)](
        TensorDescriptor(x[2:], (20, 24), (64, 1), (16, 32)),
        TensorDescriptor(out[4:], (20, 24), (64, 1), (16, 32)),
        16,
        32,
    )
    np.testing.assert_array_equal(out[4:24, :24], shifted(x[2:22, :24]))
    assert not out[:4].any() and not out[24:].any() and not out[:, 24:].any()


def test_padding_with_nan():
    x, out = random(17, 36), np.zeros((17, 36), np.float32)
    make_shift()[(2, 2)](descriptor(x, padding="nan"), descriptor(out), 16, 32)
    np.testing.assert_array_equal(out, shifted(x, np.nan))


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(rank):
    @triton.jit
    def double(source, target, RANK: tl.constexpr):
        places = (0,) * (RANK - 1) + (16,)
        target.store(places, source.load(places) * 2)

    x = random(*[3] * (rank - 1), 28).astype(np.float64)
    out = np.zeros_like(x)
    block = [2] * (rank - 1) + [16]
    double[(1,)](descriptor(x, block), descriptor(out, block), rank)
    expected = np.zeros_like(x)
    inside = (*[slice(2)] * (rank - 1), slice(16, None))
    expected[inside] = 2 * x[inside]
    np.testing.assert_array_equal(out, expected)


def test_what_is_compiled_once():
    shift = make_shift()

    def compiled(x, block=(16, 32), **options):
        return shift[(1, 1)](descriptor(x, block, **options), descriptor(np.zeros_like(x), block), *block)

    first = compiled(random(37, 52))
    assert {name: str(entry) for name, entry in first.job.entries.items() if name.startswith("source")} == {
        "source.base": "*fp32:16",
        "source.shape.0": "i32",
        "source.shape.1": "i32",
        "source.strides.0": "i64",
        "source.strides.1": "1",
        "source.block_shape": "(16, 32)",
        "source.padding": "'zero'",
    }
    assert first.metadata.written == ("target.base",)
    assert compiled(random(11, 44)) is first
    assert compiled(random(37, 52), (32, 32)) is not first
    assert compiled(random(37, 52, dtype=np.float64)) is not first
    assert compiled(random(37, 52), padding="nan") is not first
    assert compiled(random(37, 48)) is not first  # a stride that is divisible by 16


def test_fields_are_taken_as_they_are_at_the_launch():
    shift, x, out = make_shift(), random(37, 52), np.zeros((37, 52), np.float32)
    source, target = descriptor(x, (1, 1)), descriptor(out, (1, 1))
    for block in ((16, 32), (32, 64), (16, 32)):
        source.block_shape = target.block_shape = list(block)
        shift[(triton.cdiv(37, block[0]), triton.cdiv(52, block[1]))](source, target, *block)
        np.testing.assert_array_equal(out, shifted(x))
        out[:] = 0
    source.strides = (52, 2)
    with pytest.raises(DescriptorError, match="last stride"):
        shift[(1, 1)](source, target, 16, 32)


def test_a_hook_of_a_configuration_chooses_the_block():
    def choose(arguments):
        block = [arguments["M"], arguments["N"]]
        arguments["source"].block_shape = arguments["target"].block_shape = block

    configs = [triton.Config({"M": m, "N": 32}, pre_hook=choose) for m in (8, 16)]
    tuned = triton.autotune(configs, key=[])(make_shift())
    x, out = random(37, 52), np.zeros((37, 52), np.float32)
    source, target = descriptor(x, (1, 1)), descriptor(out, (1, 1))
    for _ in range(2):
        tuned[lambda meta: (triton.cdiv(37, meta["M"]), triton.cdiv(52, meta["N"]))](source, target)
        np.testing.assert_array_equal(out, shifted(x))


def test_descriptors_in_tuples():
    @triton.jit
    def copy(pair, M: tl.constexpr):
        source, target = pair
        target.store([0, 0], source.load([0, 0]))

    x, out = random(8, 4), np.zeros((8, 4), np.float32)
    for _ in range(2):
        copy[(1,)]((descriptor(x, (8, 4)), descriptor(out, (8, 4))), 8)
        np.testing.assert_array_equal(out, x)
        out[:] = 0
    with pytest.raises(triton.CompilationError):
        copy[(1,)]((descriptor(x, (8, 4)), x), 8)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x = torch.randn(37, 48).to(torch.bfloat16)
    out = torch.zeros_like(x)
    make_shift()[(3, 2)](descriptor(x), descriptor(out), 16, 32)
    wanted = torch.zeros_like(x)
    wanted[:, :-1] = x[:, 1:]
    torch.testing.assert_close(out, (wanted.double() + 48).bfloat16(), atol=0, rtol=2**-7)


def test_compiled_for_a_signature():
    compiled, x = triton.compile(make_shift(), SIGNATURE), random(37, 52)
    for constants in ((), (16, 32)):
        out = np.zeros_like(x)
        compiled.launch((3, 2), descriptor(x), descriptor(out), *constants)
        np.testing.assert_array_equal(out, shifted(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x, r"expected tensordesc<fp32\[16,32\]>, found ndarray"),
        (lambda x: descriptor(x, (32, 32)), r"source.block_shape was compiled in as \(16, 32\).*found \(32, 32\)"),
        (lambda x: descriptor(x, padding="nan"), "source.padding was compiled in as 'zero'"),
        (lambda x: descriptor(x.astype(np.float64)), r"expected \*fp32:16, found \*fp64:16"),
        (lambda x: descriptor(x.reshape(1, 37, 52), (1, 1, 4)), "found TensorDescriptor"),
    ],
)
def test_arguments_that_a_signature_does_not_fit(change, message):
    x = random(37, 52)
    with pytest.raises(ArgumentError) as raised:
        triton.compile(make_shift(), SIGNATURE).launch((1, 1), change(x), descriptor(x.copy()))
    assert raised.value.file == __file__
    assert re.search(message, str(raised.value).replace("\n", ", "))


def test_every_level_agrees():
    x = random(37, 52)
    result = verify_kernel(make_shift(), SIGNATURE, args={"source": "37x52", "target": "37x52"}, grid=(3, 2))
    assert result.ok, result
    given = {"source": descriptor(x, padding="nan"), "target": descriptor(x.copy()), "M": 16, "N": 32}
    result = verify_kernel(make_shift(), args=given, grid=(3, 2))
    assert result.ok, result
    with pytest.raises(OptionError, match="sizes of the tensor descriptor source are not known"):
        verify_kernel(make_shift(), SIGNATURE, grid=(1, 1))


def test_the_executor_takes_descriptors():
    kernel, x = triton.compile(make_shift(), SIGNATURE), random(37, 52)
    out = np.zeros_like(x)
    run(kernel.job.module("tt"), [descriptor(x), descriptor(out)], (3, 2))
    np.testing.assert_array_equal(out, shifted(x))


X = random(24, 64)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TensorDescriptor(X, (24, 64), (64, 2), (16, 32)), "last stride of a descriptor must be 1"),
        (lambda: descriptor(X.T), "last stride of a descriptor must be 1"),
        (lambda: descriptor(X[:, 1:]), "base of a descriptor must be 16-byte aligned"),
        (lambda: descriptor(random(3, 5)), "strides of a descriptor must be multiples of 16 bytes"),
        (lambda: descriptor(X, (16, 24)), "block's sizes are powers of two"),
        (lambda: descriptor(X, (16,)), "shape and block_shape have different lengths"),
        (lambda: TensorDescriptor(X, (24, 64), (1,), (16, 32)), "shape and strides have different lengths"),
        (lambda: descriptor(random(*[1] * 5, 16), [1] * 6), "1 to 5 dimensions"),
        (lambda: descriptor(X[:0]), "sizes of a descriptor must be positive"),
        (lambda: descriptor(X, padding="one"), "unknown padding"),
        (lambda: descriptor(X.astype(np.int32), padding="nan"), "padding 'nan' needs floats"),
        (lambda: descriptor(X, round_f32_to_tf32=True), "tf32"),
        (lambda: TensorDescriptor.from_tensor([1.0], (16,)), "needs an array"),
        (lambda: make_shift()[(1, 1)](descriptor(X, (16, 2)), descriptor(X, (16, 2)), 16, 2), "16 bytes or more"),
    ],
)
def test_rules_that_a_descriptor_breaks(make, message):
    with pytest.raises(DescriptorError, match=message) as raised:
        make()
    assert raised.value.file == __file__
