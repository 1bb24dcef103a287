"""`mltriton migrate` as a function: migrate, show, write, report; whether the command succeeds.

Level: source text. Standard output gets the diff (or what `--check` found), standard error the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mltriton.errors import OptionError
from mltriton.tools.demo_display import progress
from mltriton.tools.migrate.files import FileResult, migrate_files
from mltriton.tools.migrate.report.lines import located
from mltriton.tools.migrate.report.report import SUFFIXES, summary, write_report
from mltriton.tools.migrate.result import Options


def run_migrate(
    paths: Sequence[Path],
    options: Options,
    *,
    mode: str = "diff",
    report: Path | None = None,
    verify: bool = False,
    signature: str | None = None,
    explain: bool = False,
) -> bool:
    """Migrate; `mode` is diff, write or check. False where something failed or, with check, is left to migrate.

    `explain` shows every note with its details.
    """
    if report is not None and report.suffix not in SUFFIXES:
        raise OptionError(f"cannot write a report to {report}", expected=f"a name ending in {', '.join(SUFFIXES)}")
    with progress("migrate", Console(stderr=True)) as on_step:

        def on_file(number: int, count: int) -> None:
            on_step("files", number, count)

        files = migrate_files(
            paths,
            options,
            write=mode == "write",
            verify=verify,
            signature=signature,
            analyse=report is not None or explain,
            on_file=on_file,
        )
    if not files:
        print(f"no Python file in {', '.join(map(str, paths))}", file=sys.stderr)
    for one in files:
        _show(one, mode, explain=explain)
    if report is not None:
        write_report(report, files, explain=explain)
    sys.stdout.flush()
    print(summary(files), file=sys.stderr)
    failed = any(one.failed for one in files)
    pending = any(one.result is not None and (one.result.changed or one.result.unresolved) for one in files)
    return not failed and not (mode == "check" and pending)


def _show(one: FileResult, mode: str, *, explain: bool) -> None:
    if one.error is not None:
        print(one.error.render(), file=sys.stderr)
    if one.result is None:
        return
    for note in one.result.unresolved:
        print(f"{one.path}:{note.line}: left as it was: {note.text}", file=sys.stderr)
    for note in located(one.result) if explain else ():
        if note.kind != "unresolved":
            detail = f" ({note.detail})" if note.detail else ""
            print(f"{one.path}:{note.new_line}: {note.text}{detail}", file=sys.stderr)
    for proof in one.proofs:
        print(f"{one.path}: {proof}", file=sys.stderr)
    if mode == "diff":
        sys.stdout.write(one.diff())
    elif one.result.changed and not one.failed:
        print(f"{'would migrate' if mode == 'check' else 'migrated'} {one.path}")
