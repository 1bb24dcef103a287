"""Options that targets declare: who takes which, what they may be, and that each is part of the cache's key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, OptionError
from mltriton.targets.options import TargetOptions, options_for
from mltriton.targets.xe.options import XeOptions
from mltriton.tools.targets import list_targets


@triton.jit
def double(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * 2)


def test_each_target_reads_its_own() -> None:
    given = {"grf_mode": 256, "codegen": "simd"}
    assert options_for("xe:pvc", given) == XeOptions(codegen="simd", grf_mode=256)  # pyright: ignore[reportArgumentType]
    assert options_for("xe:pvc", given).attributes() == {"ttig.grf_mode": 256, "ttig.codegen": "simd"}
    assert options_for("cpu:avx2", {"grf_mode": "large", "codegen": None}) == TargetOptions()


@pytest.mark.parametrize(
    ("target", "option", "message"),
    [
        ("cpu", {"codegen": "simt"}, "the target cpu has no codegen"),
        ("generic", {"address_payloads": True}, "the target generic has no address_payloads"),
        ("xe:bmg", {"address_payloads": 1}, "address_payloads must be a bool"),
        ("xe:bmg", {"codegen": "vector"}, "there is no codegen 'vector'"),
        ("cpu", {"grf_mode": "512"}, "there is no grf_mode '512'"),
        ("cpu", {"grf": "512"}, "there is no option 'grf'"),
    ],
)
def test_what_cannot_be(target: str, option: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        triton.compile(double, "*fp32, 64", target=target, **option)


def test_a_launch_takes_them_and_names_what_it_does_not_know() -> None:
    x = np.ones(64, np.float32)
    double[(1,)](x, BLOCK=64, grf_mode="large", address_payloads=False)
    assert (x == 2).all()
    with pytest.raises(ArgumentError, match="Did you mean grf_mode"):
        double[(1,)](x, BLOCK=64, grf_modes="large")


def test_each_makes_another_key() -> None:
    options: list[dict[str, Any]] = [{}, {"codegen": "simd"}, {"grf_mode": "256"}, {"address_payloads": True}]
    keys = {triton.compile(double, "*fp32:16, 64", target="xe:pvc", num_warps=1, **how).hash for how in options}
    assert len(keys) == 4


def test_the_list_has_every_target_and_option() -> None:
    text = list_targets()
    assert "\nxe:pvc           16 lanes a warp (or 32), at most 64 warps a program; becomes spirv, isa\n" in text
    assert "Options of every target: num_warps=4" in text
    assert "Option of xe: codegen=None (one of simt, simd): simt (a program of each lane" in text


@pytest.mark.parametrize(
    ("target", "given", "kept"),
    [
        (
            "cuda:90",
            {"tensor_maps": "all", "enable_fp_fusion": False},
            {"tensor_maps": "none", "enable_fp_fusion": False},
        ),
        ("xe:pvc", {"codegen": "simd"}, {"codegen": "simd"}),
        ("cpu", {}, {}),
    ],
)
def test_a_program_that_asks_nothing_of_its_arguments(target: str, given: dict[str, Any], kept: dict[str, Any]) -> None:
    made = options_for(target, given).unconditional()
    assert made == options_for(target, kept)
