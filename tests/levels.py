"""What tests of passes, levels and targets share: run a program at every level and demand that all agree.

    check_levels(kernel, {"x": "1000:fp32", "out": "1000:fp32", "n": 1000, "BLOCK": 128}, (8,), target="generic")
    check_passes(module, "assign-layouts,distribute-to-warps", {"n": 100}, (4,))

Arrays are given as numpy arrays, torch tensors or descriptions (`128x64:bf16`); a kernel may bring its own example
(`mltriton_verify` in its file) and then needs none. Both fail with the whole report, and return it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mltriton.frontend.function import LanguageFunction
from mltriton.ir.module import Module
from mltriton.tools.verify import VerifyResult, verify_kernel, verify_module


def check_levels(
    kernel: LanguageFunction | str,
    args: Mapping[str, Any] | None = None,
    grid: Sequence[int] | None = None,
    *,
    target: str = "cpu",
    **options: Any,
) -> VerifyResult:
    """Run a kernel at every level and, where the target has machine code, natively; all must agree with level tt."""
    result = verify_kernel(kernel, args=args, grid=grid, target=target, **options)
    assert result.ok, f"\n{result}"
    return result


def check_passes(
    module: Module,
    passes: str,
    args: Mapping[str, Any] | None = None,
    grid: Sequence[int] = (1,),
    **options: Any,
) -> VerifyResult:
    """Run a module before and after each pass of a pipeline; all must agree with the module as it is."""
    result = verify_module(module, passes, args=args or {}, grid=grid, **options)
    assert result.ok, f"\n{result}"
    return result
