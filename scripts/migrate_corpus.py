"""Migrate a whole release of fla-core from the package index and say what became of each call site.

    python scripts/migrate_corpus.py 0.4.2 [--verify] [--report FILE]

Downloads the wheel to a temporary directory; writes nothing else. Exit status 1 where a file no longer parses, a second
run changes something, a kernel differs, or fewer than 95 % of the call sites were migrated.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from mltriton.tools.migrate import migrate_source
from mltriton.tools.migrate.files import migrate_files
from mltriton.tools.migrate.report import summary, write_report
from mltriton.tools.migrate.result import total

REQUIRED = 0.95


def download(version: str, directory: Path) -> Path:
    """The unpacked wheel."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        f"fla-core=={version}",
        "-d",
        str(directory),
    ]
    subprocess.run(command, check=True)
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "release")
    return directory / "release"


def _tell(number: int, count: int) -> None:
    print(f"\r{number} of {count} files", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="0.4.2")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--release", type=Path, help="an unpacked release: nothing is downloaded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        release = options.release or download(options.version, Path(directory))
        started = time.monotonic()
        files = migrate_files([release], verify=options.verify, analyse=options.report is not None, on_file=_tell)
        seconds = time.monotonic() - started
    results = [one.result for one in files if one.result is not None]
    counts = total(results)
    for name, count in sorted(counts.items()):
        print(f"{count:6}  {name}")
    wrong = [str(one.path) for one in files if one.failed]
    for result in (result for result in results if result.changed):
        ast.parse(result.text)
        if migrate_source(result.text, result.path).text != result.text:
            wrong.append(result.path)
    for one in files:
        notes = one.result.unresolved if one.result is not None else []
        unproven = [proof for proof in one.proofs if not proof.proven]
        print(
            *(f"{one.path.name}: {text}" for text in [*notes, *unproven]),
            sep="\n",
            end="\n" if notes or unproven else "",
        )
    print(f"{summary(files)} {seconds:.0f} s")
    if options.report is not None:
        write_report(options.report, files)
    print(*(f"wrong: {path}" for path in wrong), sep="\n", end="")
    return int(bool(wrong) or counts["unresolved"] > (1 - REQUIRED) * counts["sites"])


if __name__ == "__main__":
    sys.exit(main())
