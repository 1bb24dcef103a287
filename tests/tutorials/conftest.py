"""Kernels as users of Triton write them, run on torch's CPU tensors and checked against torch in float64."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory):
    """Compile into a cache of this run's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    """Give every test the same random numbers."""
    torch.manual_seed(0)
