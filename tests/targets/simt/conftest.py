"""A target called `second` while these tests run."""

from __future__ import annotations

import sys

import pytest

from mltriton.targets import registry, target

from . import second_gpu


@pytest.fixture(scope="session", autouse=True)
def second_target(tmp_path_factory: pytest.TempPathFactory):
    """A GPU that no package is for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(target.FAMILIES, second_gpu.NAME, ())
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        for part in ("spec", "target"):
            patch.setitem(sys.modules, f"mltriton.targets.{second_gpu.NAME}.{part}", second_gpu)
        yield
        registry.spec.cache_clear()
        target.find_target.cache_clear()
