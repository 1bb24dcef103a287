"""Runs the `// RUN:` lines of filecheck/**.mlir as tests: `mltriton ... | filecheck %s`, in this process.

A RUN line is `[not] mltriton ARGUMENTS [2>&1] | filecheck FILE [--check-prefix NAME]`; `%s` is the file itself, `%S`
its folder, and a line that ends in `\\` goes on in the next one. Without `not` the command must exit with 0, with it
with another status.

A test module that imports a library which is not installed (torch; where pytest stands alone, a tool of the test extra)
is skipped, and the summary says what it needs.

Whatever tests compile is verified after every pass.

`--passed-to FILE` writes the names of the tests that pass, and `--passed-in FILE` leaves those out: continuous
integration runs without torch and Intel's tools first, and with them what did not pass then.

Property tests draw the same examples in every run where the environment says `CI`, so that a change is what makes one
fail; elsewhere, and with `--hypothesis-profile=random` (`make test-all`), they draw new ones.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from mltriton.errors import TritonError

pytest_plugins = ["pytester", "on_target"]

os.environ.setdefault("MLTRITON_VERIFY_PASSES", "1")  # also of kernels that tests launch, here and in other processes
os.environ.setdefault("MLTRITON_FULL_TRACEBACK", "1")

_LIBRARIES = ("torch", "hypothesis", "xdsl", "filecheck", "typer", "libcst", "jinja2")
ABSENT = frozenset(name for name in _LIBRARIES if find_spec(name) is None)
_IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
_RUN = re.compile(r"^\s*// RUN: (.*)$", re.MULTILINE)

if "hypothesis" not in ABSENT:
    from hypothesis import HealthCheck, settings

    # How busy the machine is says nothing of a change.
    settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("random", settings.get_profile("default"), derandomize=False)
    settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True)
    settings.load_profile("ci" if os.environ.get("CI") else "random")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--passed-to", type=Path, help="write the names of the tests that pass to this file")
    parser.addoption("--passed-in", type=Path, help="leave out the tests whose names this file has")


class PassedTests:
    """Writes the name of each test that passes to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test whose call passed."""
        if report.when == "call" and report.passed:
            with self.path.open("a", encoding="utf-8") as file:
                print(report.nodeid, file=file)


def pytest_configure(config: pytest.Config) -> None:
    """Note what passes where it is asked for: in the process that gathers the reports of the others."""
    path = config.getoption("--passed-to")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(PassedTests(path))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what passed elsewhere."""
    path = config.getoption("--passed-in")
    if path is not None:
        passed = set(path.read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
        items[:] = [item for item in items if item.nodeid not in passed]


def pytest_collection_finish() -> None:
    """Tests and their modules stay: no collection of garbage looks at them again."""
    gc.collect()
    gc.freeze()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip a module that imports what is not installed."""
    lacks = ABSENT and ABSENT.intersection(_IMPORT.findall(module_path.read_text(encoding="utf-8")))
    return LackingModule.from_parent(parent, path=module_path, lacks=sorted(lacks)) if lacks else None


class LackingModule(pytest.Module):
    """A test module that needs libraries which are not installed."""

    def __init__(self, *, lacks: list[str], **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.lacks = lacks

    def collect(self) -> list[pytest.Item]:
        """Say what is missing."""
        pytest.skip(f"{self.path.name} needs {', '.join(self.lacks)}", allow_module_level=True)


class FileCheckError(Exception):
    """A RUN line failed; the text says how."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect every .mlir file in a folder called filecheck; elsewhere they are data of other tests."""
    is_test = file_path.suffix == ".mlir" and "filecheck" in file_path.parts
    return FileCheckFile.from_parent(parent, path=file_path) if is_test else None


class FileCheckFile(pytest.File):
    """An .mlir file with RUN lines."""

    def collect(self) -> Iterator[FileCheckItem]:
        """Yield one test a RUN line; a file without one is a mistake."""
        joined = re.sub(r"\\\n\s*// RUN:", "", self.path.read_text(encoding="utf-8"))
        lines = _RUN.findall(joined)
        if not lines:
            raise self.CollectError(f"{self.path} has no '// RUN:' line")
        for number, line in enumerate(lines, start=1):
            yield FileCheckItem.from_parent(self, name=f"run{number}", line=line)


class FileCheckItem(pytest.Item):
    """One RUN line."""

    def __init__(self, *, line: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.line = line

    def runtest(self) -> None:
        """Run the command and match its output."""
        for tool in ("filecheck", "typer"):
            pytest.importorskip(tool)
        paths = {"%s": self.path, "%S": self.path.parent}
        line = re.sub("%[sS]", lambda name: shlex.quote(str(paths[name.group()])), self.line)
        command, separator, check = line.partition("|")
        with pytest.MonkeyPatch.context() as patch:
            if '"mma' in self.path.read_text(encoding="utf-8"):
                import mma_target

                mma_target.register(patch)  # A target that only tests have.
            status, output = run_command(command)
        if status != int(command.split()[0] == "not"):
            raise FileCheckError(f"exit status {status} of: {command.strip()}\n{output}")
        if separator:
            match(output, shlex.split(check))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
        """Show the failure without our own traceback."""
        if isinstance(excinfo.value, FileCheckError):
            return f"RUN: {self.line}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the file and the RUN line."""
        return self.path, 0, f"{self.path.name}: {self.name}"


def run_command(command: str) -> tuple[int, str]:
    """Run `[not] mltriton ...` in this process; return 1 or 0 for failed or not, and the output."""
    from typer.testing import CliRunner

    from mltriton.commands import app

    words = shlex.split(command)
    words = words[1:] if words[0] == "not" else words
    if words[0] != "mltriton":
        raise FileCheckError(f"a RUN line calls mltriton, not {words[0]}")
    with_errors = words[-1] == "2>&1"
    result = CliRunner().invoke(app, words[1:-1] if with_errors else words[1:])
    if isinstance(result.exception, TritonError):
        return 1, f"{result.output}{result.exception.render()}\n"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    failed = result.exit_code != 0
    return int(failed), result.output if with_errors or failed else result.stdout


def match(output: str, command: list[str]) -> None:
    """Match the output with the CHECK lines that `filecheck FILE ...` names; FileCheckError where they differ."""
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    if not command or command[0] != "filecheck":
        raise FileCheckError(f"the output of a RUN line goes to filecheck, not {command}")
    options = parse_argv_options(command)
    complaints = io.StringIO()
    with contextlib.redirect_stderr(complaints), contextlib.redirect_stdout(complaints):
        status = Matcher(options, FInput("<output>", output), Parser.from_opts(options)).run()
    if status != 0:
        raise FileCheckError(f"{complaints.getvalue()}\n--- output ---\n{output}")
