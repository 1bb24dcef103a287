"""Helpers and their callers in several files: rewritten together, or left together."""

from pathlib import Path

import pytest

from migrate_cases import case
from mltriton.tools.migrate.files import FileResult, migrate_files

HEADER = "import triton\nimport triton.language as tl\n\n"
HELPER, _, CALLER = case("rule_12_attention")[0].partition("@triton.jit\ndef attn")
CALLER = f"@triton.jit\ndef attn{CALLER}"
CALLED = "acc = inner(acc, q, K + qvk_offset, stride_kk, stride_kn, V + qvk_offset, stride_vn, stride_vk, N_CTX,"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .loops import inner\n", encoding="utf-8")
    (package / "loops.py").write_text(HELPER, encoding="utf-8")
    (package / "one.py").write_text(f"{HEADER}from .loops import inner\n\n{CALLER}", encoding="utf-8")
    other = CALLER.replace("acc = inner(", "acc = loops.inner(")
    (package / "two.py").write_text(f"{HEADER}import package.loops as loops\n\n{other}", encoding="utf-8")
    (package / "three.py").write_text(f"{HEADER}from package import inner as f\n\n{CALLER.replace('inner(', 'f(')}")
    return package


def by_name(files: list[FileResult]) -> dict[str, FileResult]:
    return {one.path.stem: one for one in files}


def test_a_helper_and_its_calls_in_other_files_change_together(package: Path) -> None:
    files = by_name(migrate_files([package], write=True))
    assert not any(one.failed or (one.result and one.result.unresolved) for one in files.values())
    for name, call in (("one", "inner"), ("two", "loops.inner"), ("three", "f")):
        assert CALLED.replace("inner", call) in (package / f"{name}.py").read_text()
    assert "def inner(acc, q, K_base, K_stride_0, K_stride_1, V_base," in (package / "loops.py").read_text()
    loops = files["loops"].result
    assert loops is not None
    note = loops.of_kind("caller")[0].text
    assert f"{package}/one.py: line 17; " in note
    assert "callers in files that were not given must change alike" in note
    assert not any(one.result and one.result.changed for one in migrate_files([package]))


def test_a_helper_in_a_file_that_is_not_given_is_named(package: Path) -> None:
    (one,) = migrate_files([package / "one.py"])
    assert one.result is not None
    assert "comes from .loops: give the file of that module as well" in one.result.unresolved[0].text


def test_a_call_that_cannot_change_keeps_all_of_them(package: Path) -> None:
    text = f"{HEADER}from .loops import inner\n\n@triton.jit\ndef k(acc, q, p):\n    inner(acc, q, p, p, 8, 16, 16)\n"
    (package / "four.py").write_text(text, encoding="utf-8")
    files = by_name(migrate_files([package], write=True))
    assert (package / "loops.py").read_text() == HELPER
    assert (package / "four.py").read_text() == text
    one = files["one"].result
    assert one is not None
    assert "inner(acc, q, K_block_ptr, V_block_ptr, N_CTX" in one.text
    assert len(one.unresolved) == 2


def test_a_helper_that_is_more_than_called_stays(package: Path) -> None:
    (package / "one.py").write_text(f"{(package / 'one.py').read_text()}\n\ntable = [inner]\n")
    migrate_files([package], write=True)
    assert (package / "loops.py").read_text() == HELPER


def test_a_linked_file_that_does_not_parse_leaves_the_others_to_themselves(package: Path) -> None:
    (package / "loops.py").write_text(f"{HELPER}\ndef broken(:\n", encoding="utf-8")
    files = by_name(migrate_files([package], write=True))
    assert files["loops"].error is not None
    one = files["one"].result
    assert one is not None
    assert "Q_desc = tl.make_tensor_descriptor" in (package / "one.py").read_text()
    assert len(one.unresolved) == 2


def test_helpers_are_proven_with_kernels_of_other_files(package: Path) -> None:
    files = by_name(migrate_files([package], verify=True))
    for name in ("one", "two", "three"):
        (proof,) = files[name].proofs
        assert proof.proven, str(proof)
    (proof,) = files["loops"].proofs
    assert str(proof).startswith(f"inner: partly proven through attn of {package}/")
    assert proof.reason == "which of its calls ran is not followed into other files"
