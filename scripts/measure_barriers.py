"""What a barrier between the warps of a program costs on this CPU, by how the warps are run.

    python scripts/measure_barriers.py

Prints nanoseconds for one barrier that four warps pass: as the compiler makes it (loops over the warps between
barriers; a load and a store of 16 numbers for each warp included), as coroutines (the C library's `swapcontext`), and
as threads (`pthread_barrier_wait`). Needs a C compiler for the last two.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import mltriton as triton
import mltriton.language as tl

WARPS = 4
OTHERS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#define WARPS 4
#define SWITCHES 2000000
#define MEETINGS 20000
static ucontext_t start, warps[WARPS];
static volatile long left = SWITCHES;
static pthread_barrier_t meeting;
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * t.tv_sec + t.tv_nsec;
}
static void take_turns(int w) {
  while (left-- > 0) swapcontext(&warps[w], &warps[(w + 1) % WARPS]);
  setcontext(&start);
}
static void *meet(void *unused) {
  for (int i = 0; i < MEETINGS; i++) pthread_barrier_wait(&meeting);
  return unused;
}
int main(void) {
  for (int w = 0; w < WARPS; w++) {
    getcontext(&warps[w]);
    warps[w].uc_stack.ss_sp = malloc(65536);
    warps[w].uc_stack.ss_size = 65536;
    makecontext(&warps[w], (void (*)(void))take_turns, 1, w);
  }
  double begin = now();
  swapcontext(&start, &warps[0]);
  printf("coroutines       %10.1f ns\n", (now() - begin) / SWITCHES * WARPS);
  pthread_t threads[WARPS];
  pthread_barrier_init(&meeting, NULL, WARPS);
  begin = now();
  for (int w = 0; w < WARPS; w++) pthread_create(&threads[w], NULL, meet, NULL);
  for (int w = 0; w < WARPS; w++) pthread_join(threads[w], NULL);
  printf("threads          %10.1f ns\n", (now() - begin) / MEETINGS);
}
"""


@triton.jit(warp_level=True)
def ring(x, n, N: tl.constexpr):
    """Every warp hands its numbers to its neighbour, n times."""
    w = tl.warp_id()
    warps: tl.constexpr = tl.num_warps()
    i = tl.arange(0, N)
    shared = tl.alloc((2, warps, N), tl.float32)
    a = tl.load(x + w * N + i)
    for step in range(n):
        tl.store(shared[step % 2, w], a)
        tl.barrier()
        a = tl.load(shared[step % 2, (w + 1) % warps])
    tl.store(x + w * N + i, a)


def seconds(n: int) -> float:
    """The shortest of several launches with n barriers."""
    x = np.zeros(WARPS * 16, np.float32)
    times: list[float] = []
    for _ in range(7):
        begin = time.perf_counter()
        ring[(1,)](x, n, N=16, num_warps=WARPS)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Print the three figures."""
    seconds(1)
    each = (seconds(201_000) - seconds(1_000)) / 200_000
    print(f"loops over warps {1e9 * each:10.1f} ns")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "others.c", Path(folder) / "others"
        source.write_text(OTHERS, encoding="utf-8")
        subprocess.run(["cc", "-O2", "-pthread", source, "-o", program], check=True)
        print(subprocess.run([program], check=True, capture_output=True, text=True).stdout, end="")


if __name__ == "__main__":
    main()
