"""Migrate a whole release of fla-core from the package index and say what became of each call site.

    python scripts/migrate_corpus.py 0.4.2 [--verify] [--report FILE] [--release DIRECTORY]

Downloads the wheel to a temporary directory; writes nothing else. Exit status 1 where a file no longer parses, a second
run changes something, a kernel differs, fewer than 95 % of the call sites were migrated, or, with --verify, fewer than
90 % of the kernels were proven; 2 where the release cannot be downloaded.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from mltriton.tools.migrate import migrate_source
from mltriton.tools.migrate.files import migrate_files
from mltriton.tools.migrate.prove.verdicts import Proof
from mltriton.tools.migrate.report.report import summary, write_report
from mltriton.tools.migrate.result import Result, total

REQUIRED = 0.95  # of the call sites
REQUIRED_PROVEN = 0.9  # of the kernels


class DownloadError(Exception):
    """pip found no release, or no network."""


def download(version: str, directory: Path) -> Path:
    """The unpacked wheel; DownloadError where there is none to be had."""
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
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise DownloadError(f"cannot download fla-core {version}: {result.stderr.strip().splitlines()[-1:]}")
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "release")
    return directory / "release"


def _tell(number: int, count: int) -> None:
    print(f"\r{number} of {count} files", end="", file=sys.stderr, flush=True)


def _print_proofs(proofs: Sequence[Proof]) -> None:
    """How many kernels were proven, and how thoroughly."""
    for verdict, count in Counter(proof.verdict for proof in proofs).items():
        print(f"{count:6}  kernels {verdict}")
    proven = [proof for proof in proofs if proof.proven]
    print(f"{sum(proof.machine_code > 0 for proof in proven):6}  proven also as machine code")
    print(f"{sum(bool(proof.untried) for proof in proven):6}  proven, a flag with one of its values only")
    print(f"{sum(proof.inputs for proof in proofs):6}  inputs")
    print(f"{sum(proof.machine_code for proof in proofs):6}  inputs also as machine code")
    for reason, count in Counter(proof.skipped for proof in proofs if proof.skipped).items():
        print(f"{count:6}  machine code skipped: {reason}")


def _print_code(results: Sequence[Result]) -> None:
    """What was written: descriptors, those that repeat one of their function, and lines, old ones too."""
    made = repeated = kernels = 0
    lines = Counter[str]()
    for result in (result for result in results if result.changed):
        for when, text in (("before", result.source), ("after", result.text)):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and node.name in result.kernels:
                    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
                    texts = [ast.unparse(each) for each in calls]
                    texts = [each for each in texts if each.partition("(")[0].endswith("make_tensor_descriptor")]
                    made, repeated = made + len(texts), repeated + len(texts) - len(set(texts))
                    lines[when] += (node.end_lineno or node.lineno) - node.lineno + 1
                    kernels += when == "after"
    print(f"{made:6}  descriptors in {kernels} functions, of which {repeated} repeat an identical one")
    print(f"{lines['before']:6}  lines of these functions before, {lines['after']} after")
    notes = [len(note.text) for result in results for note in result.notes if note.kind == "performance"]
    middle = int(median(notes)) if notes else 0
    print(f"{middle:6}  characters of a performance note (median), {max(notes, default=0)} at most")


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="0.4.2")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--release", type=Path, help="an unpacked release: nothing is downloaded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        try:
            release = options.release or download(options.version, Path(directory))
        except DownloadError as error:
            print(error, file=sys.stderr)
            return 2
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
        name = "/".join(one.path.parts[-2:])
        print(
            *(f"{name}: {text}" for text in [*notes, *unproven]),
            sep="\n",
            end="\n" if notes or unproven else "",
        )
    proofs = [proof for one in files for proof in one.proofs]
    if proofs:
        _print_proofs(proofs)
    _print_code(results)
    print(f"{summary(files)} {seconds:.0f} s")
    if options.report is not None:
        write_report(options.report, files)
    print(*(f"wrong: {path}" for path in wrong), sep="\n", end="")
    left = counts["unresolved"] > (1 - REQUIRED) * counts["sites"]
    unproven = sum(proof.proven for proof in proofs) < REQUIRED_PROVEN * len(proofs)
    return int(bool(wrong) or left or unproven)


if __name__ == "__main__":
    sys.exit(main())
