"""The runner of .mlir files fails when it should; modules that import what is not installed are skipped."""

import re
from pathlib import Path

import pytest

FILES = {
    "match": ("// RUN: mltriton --version | filecheck %s\n// CHECK: mltriton {{[0-9.]+}}\n", "passed"),
    "mismatch": ("// RUN: mltriton --version | filecheck %s\n// CHECK: something else\n", "failed"),
    "forbidden": ("// RUN: mltriton --version | filecheck %s\n// CHECK-NOT: mltriton\n", "failed"),
    "prefix": ("// RUN: mltriton --version | filecheck %s --check-prefix V\n// V: mltriton\n", "passed"),
    "continued": ("// RUN: mltriton \\\n// RUN:   --version | filecheck %s\n// CHECK: mltriton\n", "passed"),
    "status": ("// RUN: mltriton compile | filecheck %s\n// CHECK: Missing\n", "failed"),
    "expected_status": ("// RUN: not mltriton compile 2>&1 | filecheck %s\n// CHECK: Missing argument\n", "passed"),
    "missing_failure": ("// RUN: not mltriton --version | filecheck %s\n// CHECK: mltriton\n", "failed"),
    "named_error": (
        "// RUN: not mltriton compile gone.py:k -s i32 2>&1 | filecheck %s\n// CHECK: OptionError: there is no file\n",
        "passed",
    ),
    "other_program": ("// RUN: cat %s | filecheck %s\n// CHECK: cat\n", "failed"),
    "no_run": ("module {}\n", "error"),
    "no_checks": ("// RUN: mltriton --version | filecheck %s\n", "failed"),
}


@pytest.fixture
def outcomes(pytester: pytest.Pytester) -> dict[str, str]:
    """What became of each file, in one run in a process of its own."""
    here = Path(__file__).parent
    pytester.makeconftest((here / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(on_target=(here / "on_target.py").read_text(encoding="utf-8"))
    folder = pytester.mkdir("filecheck")
    for name, (text, _) in FILES.items():
        (folder / f"{name}.mlir").write_text(text)
    pytester.makefile(".mlir", data_of_another_test="module {}")
    result = pytester.runpytest_subprocess("-rA", "--continue-on-collection-errors", "-p", "no:cacheprovider")
    summary = re.findall(r"^(PASSED|FAILED|ERROR) (?:filecheck/)?(\w+)\.mlir", result.stdout.str(), re.MULTILINE)
    return {name: outcome.lower() for outcome, name in summary}


def test_each_file_ends_as_it_should(outcomes: dict[str, str]) -> None:
    assert outcomes == {name: outcome for name, (_, outcome) in FILES.items()}


def test_a_module_that_needs_what_is_not_installed_is_skipped(pytester: pytest.Pytester) -> None:
    here = Path(__file__).parent
    text = (here / "conftest.py").read_text(encoding="utf-8")
    assert '_LIBRARIES = ("torch", ' in text
    pytester.makeconftest(text.replace('_LIBRARIES = ("torch", ', '_LIBRARIES = ("not_there", "torch", '))
    pytester.makepyfile(on_target=(here / "on_target.py").read_text(encoding="utf-8"))
    pytester.makepyfile(test_lacking="import os\nimport not_there\n", test_plain="def test_it():\n    pass\n")
    result = pytester.runpytest_subprocess("-rs", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*SKIPPED*test_lacking.py needs not_there"])


def test_what_passed_in_one_run_is_left_out_of_another(pytester: pytest.Pytester) -> None:
    here = Path(__file__).parent
    pytester.makeconftest((here / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(on_target=(here / "on_target.py").read_text(encoding="utf-8"))
    pytester.makepyfile(
        "import os, pytest\n"
        "@pytest.mark.parametrize('text', ['a', 'a b', 'c[d]'])\ndef test_plain(text): pass\n"
        "def test_skipped():\n    if 'TOOLS' not in os.environ: pytest.skip('no tools')\n"
        "def test_failing(): assert 'TOOLS' in os.environ\n"
    )
    flags = ("-p", "no:cacheprovider", "-n", "1")
    first = pytester.runpytest_subprocess(*flags, "--passed-to", "passed")
    first.assert_outcomes(passed=3, skipped=1, failed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLS", "1")
        second = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--passed-in", "passed")
    second.assert_outcomes(passed=2, deselected=3)
