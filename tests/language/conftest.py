"""A kernel under construction for tests that look at operations and types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mltriton.language.building import building

from .tracing import Trace, call_directly


@pytest.fixture
def kernel() -> Iterator[Trace]:
    """Builtins called in the test create operations in this kernel, which must verify in the end."""
    trace = Trace()
    with building(trace.builder, call_directly):
        yield trace
    trace.finish()
