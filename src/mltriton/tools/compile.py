"""`python -m triton.tools.compile FILE.py -n KERNEL -s SIGNATURE`: upstream's command for programs without Python.

Takes upstream's options; writes the object file and the C header that `mltriton aot` writes. Options about GPUs that
change nothing here are taken; a grid is the caller's, and a target other than a CPU is a `TargetError`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mltriton.tools.aot import compile_kernel, print_files
from mltriton.tools.c_object import write_c_object


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile; print the files that were written. The status is 1 after an error, which is printed."""
    parser = argparse.ArgumentParser(prog="triton.tools.compile", description="Compile a kernel for C programs.")
    parser.add_argument("path", type=Path, help="the Python file with the kernel")
    parser.add_argument("--kernel-name", "-n", required=True)
    parser.add_argument("--signature", "-s", required=True, help='"*fp32:16, i32, 1024": an entry a parameter')
    parser.add_argument("--target", "-t", default="cpu", help="cpu, or cpu:VARIANT")
    parser.add_argument("--num-warps", "-w", type=int, default=1)
    parser.add_argument("--num-stages", "-ns", type=int, default=3)
    parser.add_argument("--out-name", "-on", help="of the C functions")
    parser.add_argument("--out-path", "-o", type=Path, help="the directory, and the name where that is not given")
    parser.add_argument("--grid", "-g", help="not needed: the C function takes it")
    given = parser.parse_args(arguments)
    folder = given.out_path.parent if given.out_path else Path()
    name = given.out_name or (given.out_path.name if given.out_path else None)

    def write() -> tuple[Path, Path]:
        kernel = compile_kernel(
            f"{given.path}:{given.kernel_name}",
            given.signature,
            target=given.target,
            num_warps=given.num_warps,
            num_stages=given.num_stages,
        )
        return write_c_object(kernel, folder, name)

    return print_files(write)


if __name__ == "__main__":
    sys.exit(main())
