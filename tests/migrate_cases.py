"""The golden cases of `mltriton migrate`: a kernel and what it becomes in each form."""

from pathlib import Path

DIRECTORY = Path(__file__).parent / "tools/migrate/golden"
FORMS = ("auto", "descriptor", "pointer")
NAMES = sorted(path.stem for path in DIRECTORY.glob("*.txt"))


def case(name: str) -> tuple[str, dict[str, str]]:
    """The old text, and the new ones by form."""
    before, *parts = (DIRECTORY / f"{name}.txt").read_text(encoding="utf-8").split("# ==== ")
    return before, dict(part.split("\n", 1) for part in parts)
