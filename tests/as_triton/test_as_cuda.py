"""The CPU in place of a CUDA device. In a fresh process: nothing takes it away again."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_import import python

PROGRAM = """
import warnings
import torch
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count >= 1
x, y = torch.rand(1000, device="cuda"), torch.rand(1000).cuda()
out = torch.empty_like(x, device=torch.device("cuda", 0))
assert x.is_cuda and out.device.type == "cpu"
with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
    add[(8,)](x, y, out, 1000, BLOCK=128)
torch.cuda.synchronize()
torch.testing.assert_close(out, x + y)
linear = torch.nn.Linear(3, 4, device="cuda").to("cuda")
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
linear(torch.rand(2, 3, device="cuda")).sum().backward()
end.record()
assert start.elapsed_time(end) > 0
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert linear(torch.rand(2, 3, device="cuda")).dtype is torch.bfloat16
with torch.cpu.device(0):
    assert torch.arange(3, device="cuda:0").to(device="cuda", dtype=torch.float32).tolist() == [0, 1, 2]
module = getattr(torch, x.device.type)
assert module.get_device_properties(x.device).multi_processor_count >= 1
assert module.get_device_capability() == torch.cuda.get_device_capability() and module.memory_allocated() == 0
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        assert x.is_cuda
        return x + x
    @staticmethod
    def backward(context, gradient):
        assert gradient.is_cuda
        gradient = gradient.contiguous()
        out = torch.empty(gradient.shape, device="cuda")
        add[(1,)](gradient, gradient, out, out.numel(), BLOCK=16)
        return out

x = torch.rand(3, device="cuda", requires_grad=True)
Doubled.apply(x).sum().backward()
assert x.grad.tolist() == torch.autograd.grad(Doubled.apply(x).sum(), x)[0].tolist() == [2, 2, 2]
host = torch.rand(3)
moved = [host.to("cuda"), host.cuda(), host.to(device=torch.device("cuda")), host.to("cuda", torch.float32)]
assert len({x.data_ptr() for x in (host, *moved)}) == 5 and all(torch.equal(x, host) for x in moved)
assert host.to(torch.float32) is host and x.to("cuda") is x
generator = torch.Generator(device="cuda").manual_seed(5)
assert isinstance(generator, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
assert torch.rand(3, generator=generator).is_cuda and torch.Generator().device.type == "cpu"
assert torch.rand(3, pin_memory=True).pin_memory().device.type == "cpu"
torch.manual_seed(3)
first = torch.rand(4, device="cuda")
torch.cuda.manual_seed_all(3)
assert torch.equal(first, torch.rand(4))
state = torch.cuda.get_rng_state()
first = torch.rand(4, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.rand(4))
compiled = torch.compile(lambda x: torch.relu(x) * 2, backend="aot_eager")
assert torch.equal(compiled(torch.arange(-3.0, 3.0, device="cuda")), torch.arange(-3.0, 3.0).relu() * 2)
print("as on a GPU")
"""


TRAINING = """
import copy
import torch
torch._inductor.config.cpu_backend = "triton"
torch._inductor.config.compile_threads = 1
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to("cuda")
x = torch.randn(16, 32, device="cuda")
expected = copy.deepcopy(model).double()
for run, inputs in ((torch.compile(model), x), (expected, x.double())):
    run(inputs).square().mean().backward()
    torch.optim.SGD(run.parameters(), 0.1).step()
for found, exact in zip(model.parameters(), expected.parameters(), strict=True):
    torch.testing.assert_close(found.grad.double(), exact.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-6)
print("trained")
"""


def test_a_compiled_model_is_trained_as_on_cuda(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(TRAINING)
    assert python("-m", "mltriton.as_triton", "--as-cuda", str(tmp_path / "program.py")) == "trained\n"


def test_a_program_for_cuda_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(PROGRAM)
    printed = python("-W", "error", "-m", "mltriton.as_triton", "--as-cuda", "--explain", str(tmp_path / "program.py"))
    assert printed.startswith("as on a GPU\n")
    assert "as CUDA: torch.cuda.is_available() is True" in printed
