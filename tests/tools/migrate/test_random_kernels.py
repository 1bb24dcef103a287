"""Random kernels with block pointers in branches and loops: migrated in each form, and proven."""

import importlib.util
from pathlib import Path

import pytest

from mltriton.tools.migrate import Options, migrate_source
from mltriton.tools.migrate.prove.proof import prove
from mltriton.tools.migrate.prove.verdicts import Limits

_SPEC = importlib.util.spec_from_file_location("random_kernels", Path(__file__).with_name("random_kernels.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
random_kernels = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(random_kernels)


def check(seed: int, form: str, verdicts: tuple[str, ...] = ("proven",)) -> None:
    text = random_kernels.Kernel(seed).text()
    result = migrate_source(text, f"random_{seed}.py", Options(to=form))
    assert not result.unresolved
    assert "make_block_ptr" not in result.text
    assert migrate_source(result.text, options=Options(to=form)).text == result.text
    (proof,) = prove(result, limits=Limits(machine_code=0))
    # With --to descriptor an access that does not check all dimensions may leave its shape on every input.
    assert proof.verdict in verdicts or (form == "descriptor" and "leaves a shape" in proof.reason), (
        f"{proof}\n{text}\n{result.text}"
    )


@pytest.mark.parametrize("form", ["auto", "descriptor", "pointer"])
@pytest.mark.parametrize("seed", range(5))
def test_a_random_kernel_is_proven(seed: int, form: str) -> None:
    check(seed, form)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["auto", "descriptor", "pointer"])
@pytest.mark.parametrize("seed", range(100, 160))
def test_more_random_kernels_write_the_same(seed: int, form: str) -> None:
    """No input takes some branches of a random kernel: `s > 2` after `s += 1`, say."""
    check(seed, form, ("proven", "partly proven"))
