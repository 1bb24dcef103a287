"""The planted mistakes still fit the source, and the command that plants them tells right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations import MUTATIONS
from mutations.mutation import ROOT, Mutation, StaleMutationError
from mutations.run import Copy

FEWEST = 40


def test_there_are_enough_in_every_part() -> None:
    assert len(MUTATIONS) >= FEWEST
    parts = {mutation.file.split("/")[0] for mutation in MUTATIONS}
    assert parts >= {"analysis", "dialects", "frontend", "language", "layouts", "passes", "targets"}
    passes = {mutation.file.split("/")[1] for mutation in MUTATIONS if mutation.file.startswith("passes/")}
    assert passes == {"any", "tt", "ttg", "warp", "intrinsic"}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.why}")
def test_every_mutation_stands_in_the_source(mutation: Mutation) -> None:
    compile(mutation.applied(), mutation.path, "exec")
    assert mutation.why
    for word in mutation.selection:
        assert word.startswith("-k") or (ROOT / word.split("::")[0]).exists(), word


def test_no_mistake_is_planted_twice() -> None:
    assert len({(mutation.file, mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS)


def test_a_mutation_whose_text_is_gone_is_an_error() -> None:
    stale = Mutation("errors.py", "no such text", "another", "it is gone", "test_errors.py")
    with pytest.raises(StaleMutationError, match=r"errors.py has 0 times, not once"):
        stale.applied()
    twice = Mutation("errors.py", "import", "another", "there are several", "test_errors.py")
    with pytest.raises(StaleMutationError, match=r"times, not once"):
        twice.applied()


def test_a_mistake_is_caught_and_the_copy_repaired(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    wrong = next(mutation for mutation in MUTATIONS if mutation.why == "(x + a) + b becomes x + (a - b)")
    assert copy.noticed_by(wrong) == "tests/filecheck/canonicalize.mlir::run1"
    assert (copy.source / wrong.path).read_text() == (ROOT / "src" / wrong.path).read_text()
    assert copy.test(wrong.selection)[0] == 0
