"""What `mltriton.kernels` exports."""

from __future__ import annotations

from pathlib import Path

import pytest

from mltriton import kernels


@pytest.mark.parametrize("name", kernels.__all__)
def test_a_function_has_no_module_of_its_name(name: str) -> None:
    """Importing a module of the package would put it where the function was."""
    assert not (Path(kernels.__path__[0]) / f"{name}.py").exists()
    assert callable(getattr(kernels, name))
