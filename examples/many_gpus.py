"""A product and attention shared out over the GPUs of a machine, by torch.distributed.

`python examples/many_gpus.py [processes]` starts a process for each GPU (NCCL), or without GPUs that many on the CPU
(gloo); `torchrun --nproc-per-node N examples/many_gpus.py` does as well. Each process has its part of the work,
computes it with an ordinary kernel, and gets the others' results; any number of processes will do, also one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from mltriton.kernels import flash_attention, flash_attention_with_lse, matmul

gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # the new name, and torch 2.11's


def part_of(x: torch.Tensor, dim: int) -> torch.Tensor:
    """This process's part along a dimension; parts differ by one at most."""
    return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].contiguous()


def gathered(x: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    """The parts of all processes put together to `size` along a dimension."""
    count, mine = dist.get_world_size(), x.movedim(dim, 0)
    sizes = [len(part) for part in torch.arange(size).tensor_split(count)]
    if mine.shape[0] < max(sizes):  # Collectives exchange parts of one size.
        mine = torch.cat([mine, mine.new_zeros(max(sizes) - mine.shape[0], *mine.shape[1:])])
    parts = mine.new_empty(count * max(sizes), *mine.shape[1:])
    gather(parts, mine.contiguous())
    if min(sizes) < max(sizes):
        parts = torch.cat([part[:size] for part, size in zip(parts.chunk(count), sizes, strict=True)])
    return parts.movedim(0, dim)


def product_by_rows(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b: each process multiplies some rows of a."""
    return gathered(matmul(part_of(a, 0), b), 0, len(a))


def product_by_depth(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b: each process multiplies some columns of a by the rows of b that belong to them, and sums are added up."""
    total = matmul(part_of(a, 1), part_of(b, 0)).float()
    dist.all_reduce(total)
    return total.to(a.dtype)


def attention_by_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of [batch, heads, length, dim]: each process has some heads."""
    parts = [part_of(x, 1) for x in (q, k, v)]
    made = flash_attention(*parts) if parts[0].numel() else parts[0]
    return gathered(made, 1, q.shape[1])


def attention_by_keys(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same where each process has some keys and values: sums of exponentials weigh the parts."""
    made, lse = flash_attention_with_lse(q, part_of(k, 2), part_of(v, 2))
    highest = lse.clone()
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    weight = torch.exp(lse - highest)[..., None]
    total = torch.cat([made.float() * weight, weight], -1)
    dist.all_reduce(total)
    return (total[..., :-1] / total[..., -1:]).to(q.dtype)


def milliseconds(work: Callable[[], object], device: torch.device, times: int = 5) -> float:
    """Of one run, where all processes begin together: the fastest of some."""
    found: list[float] = []
    for _ in range(times + 1):
        dist.barrier()
        if device.type == "cuda":  # NCCL's barrier waits on the GPU.
            torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) * 1e3)
    return min(found[1:])


def run(device: torch.device) -> None:
    """Compare with one process's results, and the times."""
    large, rank, count = device.type == "cuda", dist.get_rank(), dist.get_world_size()
    size, heads, length, dim = (16384, 16, 16384, 128) if large else (256, 4, 128, 64)
    dtype = torch.float16 if large else torch.float32
    made = torch.Generator(device).manual_seed(0)  # Every process has the same numbers.
    a, b = (torch.randn(size, size, generator=made, device=device).to(dtype) for _ in range(2))
    q, k, v = (torch.randn(2, heads, length, dim, generator=made, device=device).to(dtype) for _ in range(3))
    alone: dict[str, Callable[[], torch.Tensor]] = {
        "product": lambda: matmul(a, b),
        "attention": lambda: flash_attention(q, k, v),
    }
    shared: dict[str, Callable[[], torch.Tensor]] = {
        "product by rows": lambda: product_by_rows(a, b),
        "product by depth": lambda: product_by_depth(a, b),
        "attention by heads": lambda: attention_by_heads(q, k, v),
        "attention by keys": lambda: attention_by_keys(q, k, v),
    }
    one = {name: (work(), milliseconds(work, device)) for name, work in alone.items()}
    for name, work in shared.items():
        expected, before = one[name.split()[0]]
        error = float((work() - expected).float().norm() / expected.float().norm())
        assert error < 2e-3, f"{name}: relative error {error:.1e}"
        after = milliseconds(work, device)
        if rank == 0:
            what = f"{before:.2f} ms alone, {after:.2f} ms by {count}: efficiency {before / after / count:.2f}"
            print(f"{name}: relative error {error:.1e}, {what}", flush=True)


def process(rank: int, count: int) -> None:
    """One process, on the GPU of its number where there are any."""
    on_gpus = torch.cuda.is_available()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    where = device if on_gpus else None
    dist.init_process_group("nccl" if on_gpus else "gloo", rank=rank, world_size=count, device_id=where)
    run(device)
    dist.destroy_process_group()


def main() -> None:
    if "RANK" in os.environ:  # torchrun's
        process(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else torch.cuda.device_count() or 2
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29517")
    processes.spawn(process, (count,), count)


if __name__ == "__main__":
    main()
