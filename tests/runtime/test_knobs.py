"""`mltriton.knobs` and the variables behind it: what they change in kernels, and knobs that there are not."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import NameNotFoundError, OptionError
from mltriton.runtime.config import ConfigError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


FACTOR = 2.0


def test_global_numbers_where_they_are_allowed(monkeypatch):
    @triton.jit
    def kernel(out):
        tl.store(out, FACTOR)

    out = np.zeros(1, np.float32)
    with pytest.raises(NameNotFoundError, match="FACTOR, which is not a constexpr"):
        kernel[(1,)](out)
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.allow_non_constexpr_globals = True
        for value in (2.0, 3.0):  # A changed one is compiled for anew.
            monkeypatch.setitem(globals(), "FACTOR", value)
            kernel[(1,)](out)
            assert out[0] == value


def test_the_usual_precision_of_dots(monkeypatch):
    @triton.jit
    def kernel(x, out):
        i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
        tl.store(out + i, tl.dot(tl.load(x + i), tl.load(x + i)))

    with triton.knobs.language.scope():
        for asked in ("tf32x3", "ieee", None):
            triton.knobs.language.fp32_default = asked
            text = triton.compile(kernel, "*fp32, *fp32", target="generic").asm["tt"]
            assert ("inputPrecision = tf32x3" in text) == (asked == "tf32x3"), text
        monkeypatch.setenv("TRITON_F32_DEFAULT", "fp8")
        with pytest.raises(ConfigError, match="one of ieee, tf32, tf32x3"):
            triton.compile(kernel, "*fp32, *fp32", target="generic")


def test_unknown_knobs():
    assert getattr(triton.knobs.runtime, "kernel_load_start_hook", "default") == "default"
    assert not hasattr(triton.knobs.runtime, "nothing")
    with pytest.raises(OptionError, match="there is no knob"):
        _ = triton.knobs.runtime.nothing
