"""Every example runs, says what it should, and computes the right numbers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "vector_add": "numpy: the greatest difference is 0.0\n",
    "fused_softmax": "mltriton: ",
    "matmul": "the best of 3 configurations: ",
    "paged_attention": "by_warps: right, ",
    "levels": "generic: the lines of each level\n",
    "many_gpus": "attention by keys: relative error ",
}


@pytest.fixture(scope="module", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_all_examples_are_known() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_it_runs(name: str) -> None:
    if name == "many_gpus":
        pytest.importorskip("torch")
    path = [str(EXAMPLES.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout


def test_softmax_is_right() -> None:
    x = np.random.default_rng(0).standard_normal((7, 300), dtype=np.float32)
    module = example("fused_softmax")
    np.testing.assert_allclose(module.softmax(x, programs=3), module.naive_softmax(x.astype(np.float64)), rtol=2e-6)


@pytest.mark.parametrize("activation", ["", "leaky_relu"])
def test_matmul_wraps_around(activation: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((70, 90)), rng.standard_normal((90, 50)).T.copy().T
    expected = a @ b
    if activation:
        expected = np.where(expected >= 0, expected, 0.01 * expected)
    found = example("matmul").matmul(a.astype(np.float32), b.astype(np.float32), activation)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_levels_of_the_paper() -> None:
    module = example("levels")
    asm = module.triton.compile(module.gemm, signature=module.SIGNATURE, target="generic", num_warps=32).asm
    assert "tensor<256x32xf16>" in asm["tt"]
    assert "sizePerWarp = [32, 64], warpsPerCTA = [8, 4]" in asm["ttg"]
    assert asm["intrinsic"].count("tt.dot") == 32


@pytest.mark.parametrize("name", ["by_workgroups", "by_warps"])
def test_paged_attention_is_right(name: str) -> None:
    rng = np.random.default_rng(0)
    module = example("paged_attention")
    q = rng.standard_normal((2, 4, 32), np.float32)
    k_cache, v_cache = (rng.standard_normal((9, 32, 2, 32), np.float32) for _ in range(2))
    given = (q, k_cache, v_cache, rng.permutation(9)[:8].astype(np.int32).reshape(2, 4), np.array([5, 120], np.int32))
    o = module.decode(getattr(module, name), *given)
    np.testing.assert_allclose(o, module.expected(*given), rtol=1e-4, atol=1e-5)
