"""torch's own operations through torch.compile with Triton kernels: `operations.py`, in processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .test_import import SOURCES, python

SCRIPT = str(Path(__file__).with_name("operations.py"))
# Of each way in which Inductor writes kernels a few.
SOME = (
    *("atan2", "floor_divide", "logit", "pow", "where", "argmin", "logsumexp", "prod", "std"),
    *("cat", "constant_pad_nd", "flip", "gather", "index_add", "scatter_reduce", "cumsum", "cummax"),
    *("nn.functional.layer_norm", "nn.functional.max_pool2d", "nn.functional.cross_entropy"),
)


def operations(directory: Path, *arguments: str, seconds: int = 240) -> str:
    """The last line of the report: the share and number of samples that pass, after every failure."""
    pytest.importorskip("torch")
    folders = {"TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"), "MLTRITON_CACHE_DIR": str(directory / "kernels")}
    return python("-W", "ignore", SCRIPT, *arguments, seconds=seconds, **folders)


def test_some_operations(tmp_path: Path) -> None:
    printed = operations(tmp_path, "--samples", "1", "--types", "float32", "--processes", "1", *SOME)
    assert printed.startswith("100.00 %"), printed


@pytest.mark.slow
def test_all_operations(tmp_path: Path) -> None:
    assert operations(tmp_path, "--samples", "1", "--types", "float32", seconds=7200)


JUDGE = """
import torch
from operations import Sample, as_near

sample = Sample([torch.randn(100).half()], lambda tensors: tensors[0].sum())
eager = sample.call(sample.tensors)
print(as_near(sample, eager, eager), as_near(sample, eager + 1, eager))
"""


def test_as_near_as_eager_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "judge.py").write_text(JUDGE)
    paths = os.pathsep.join((SOURCES, str(Path(SCRIPT).parent)))
    assert python("-W", "ignore", str(tmp_path / "judge.py"), PYTHONPATH=paths).splitlines()[-1] == "True False"
