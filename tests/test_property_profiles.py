"""Property tests: the same examples in CI, new ones elsewhere and on demand, their own settings notwithstanding."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("hypothesis")

TEST = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=5)
@given(st.integers(0, 2**64))
def test_numbers(number):
    print("number", number)
"""


@pytest.mark.parametrize(
    ("ci", "options", "is_random"),
    [("true", (), False), ("", (), True), ("true", ("--hypothesis-profile=random",), True)],
)
def test_examples(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci, options, is_random):
    monkeypatch.setenv("CI", ci)
    profiles = (Path(__file__).parent / "conftest.py").read_text(encoding="utf-8").splitlines()
    pytester.makeconftest(
        "\n".join(
            [
                "import os",
                "from hypothesis import HealthCheck, settings",
                *[line.strip() for line in profiles if line.strip().startswith("settings.")],
            ]
        )
    )
    pytester.makepyfile(TEST)
    runs = []
    for _ in range(2):
        result = pytester.runpytest_subprocess("-q", "-s", *options)
        result.assert_outcomes(passed=1)
        runs.append([line for line in result.outlines if line.startswith("number")])
    assert len(runs[0]) >= 5
    assert (runs[0] != runs[1]) == is_random
