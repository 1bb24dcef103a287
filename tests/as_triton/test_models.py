"""Models of transformers through torch.compile with Triton kernels: `models.py`, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_import import python


@pytest.mark.slow
def test_all_models(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folders = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "MLTRITON_CACHE_DIR": str(tmp_path / "kernels")}
    script = str(Path(__file__).with_name("models.py"))
    assert python("-W", "ignore", script, seconds=3600, **folders).count("kernels") == 7
