"""FlagGems in ATen's place on CPU tensors: torch's own functions, computed by FlagGems' kernels.

The wheel has a back end for CPUs (`_arm`) that its list of vendors lacks, and asks `torch.cpu` for a current device by
number: both are added here. The `add` of that back end is an example that takes no broadcasting, so it is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from enum import Enum
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import randn

PACKAGES = (
    *("flag-gems==5.0.2", "sqlalchemy==2.0.48", "PyYAML==6.0.3", "packaging==26.0"),
    *("typing_extensions==4.16.0", "greenlet==3.5.0"),
)
Function = Callable[..., Any]
Operation = tuple[Function, Function, Sequence[Any]]


@cache
def _library() -> Any:
    cpu: Any = torch.cpu
    cpu.current_device = lambda: 0
    cpu.device = cpu.device if hasattr(cpu, "device") else lambda *_: nullcontext()
    os.environ["GEMS_VENDOR"] = "arm"
    folder = importlib.util.find_spec("flag_gems")
    assert folder is not None and folder.submodule_search_locations
    name = "flag_gems.runtime.common"
    spec = importlib.util.spec_from_file_location(name, f"{folder.submodule_search_locations[0]}/runtime/common.py")
    assert spec is not None and spec.loader is not None
    common: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(common)
    known = {member.name: member.value for member in common.vendors}
    vendors: Any = Enum("vendors", {**known, "ARM": len(known)})
    vendors.get_all_vendors = lambda: {member.name.lower(): member for member in vendors}
    common.vendors = vendors
    sys.modules[name] = common
    return importlib.import_module("flag_gems")


def _by_gems(function: Function, *names: str) -> Function:
    def run(*inputs: Any) -> Any:
        with redirect_stdout(None), _library().use_gems(include=list(names)):  # It says which kernels are a vendor's.
            return function(*inputs)

    return run


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    x, y, square = randn(33, 100), randn(33, 100), randn(64, 64)
    places = torch.randint(0, 33, (20,))
    picture, weights = randn(2, 4, 16, 16), randn(8, 4, 3, 3)
    functions: dict[str, tuple[Function, Sequence[Any]]] = {
        **{name: (getattr(torch, name), (x,)) for name in ("abs", "exp", "sin", "cos", "tanh", "sigmoid")},
        **{name: (getattr(torch, name), (x, y)) for name in ("sub", "mul", "div", "maximum", "minimum")},
        "gelu": (F.gelu, (x,)),
        "silu": (F.silu, (x,)),
        "softmax": (lambda x: torch.softmax(x, -1), (x,)),
        "log_softmax": (lambda x: torch.log_softmax(x, -1), (x,)),
        "sum_dim": (lambda x: x.sum(1), (x,)),
        "mean_dim": (lambda x: x.mean(1), (x,)),
        "amax": (lambda x: x.amax(1), (x,)),
        "var_mean": (lambda x: torch.var_mean(x, 1), (x,)),
        "prod_dim": (lambda x: x.prod(1), (x,)),
        "cumsum": (lambda x: x.cumsum(1), (x,)),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (100,), w, b), (x, randn(100), randn(100))),
        "mm": (torch.mm, (square, randn(64, 48))),
        "bmm": (torch.bmm, (randn(3, 20, 30), randn(3, 30, 25))),
        "addmm": (torch.addmm, (randn(64, 48), square, randn(64, 48))),
        "sort": (lambda x: x.sort(1), (x,)),
        "topk": (lambda x: x.topk(5, 1), (x,)),
        "gather": (lambda x, i: x.gather(0, i[:, None].expand(20, 100)), (x, places)),
        "index_select": (lambda x, i: x.index_select(0, i), (x, places)),
        "embedding": (lambda w, i: F.embedding(i, w), (x, places)),
        "where_self": (lambda x, y: torch.where(x > 0, x, y), (x, y)),
        "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), (x,)),
        "cat": (lambda x, y: torch.cat([x, y], 1), (x, y)),
        "flip": (lambda x: x.flip(1), (x,)),
        "tril": (torch.tril, (square,)),
        "triu": (torch.triu, (square,)),
        "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (picture, weights)),
        "repeat": (lambda x: x.repeat(2, 3), (x,)),
        "mse_loss": (F.mse_loss, (x, y)),
    }
    return {name: (_by_gems(function, name), function, [*inputs]) for name, (function, inputs) in functions.items()}
