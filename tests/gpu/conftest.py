"""Tests that need an NVIDIA GPU, and torch for it: skipped with a word elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from mltriton.errors import DeviceError
from mltriton.targets.nvidia import driver


@cache
def missing() -> str:
    """What there is not; nothing where tests can run."""
    try:
        driver.device(0)
        import torch
    except DeviceError as error:
        return error.message
    except ImportError:
        return "torch is not installed"
    return "" if torch.cuda.is_available() else "torch is not built for CUDA"


@pytest.fixture(scope="session", autouse=True)
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Skip without a GPU; compile into a cache of this run's own."""
    if missing():
        pytest.skip(missing())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    """Give every test the same random numbers."""
    import torch

    torch.manual_seed(0)
