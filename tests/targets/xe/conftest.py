"""What the tests of the Xe target need besides Python: they are skipped where a tool is not installed."""

from __future__ import annotations

import pytest

from mltriton.errors import DeviceError
from mltriton.runtime import config
from mltriton.targets.xe import driver
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.prefix import find_tool
from spirv_validation import validator

INSTALL = "scripts/install-ocloc.sh installs it"


@pytest.fixture
def needs_ocloc() -> None:
    if find_tool("ocloc", config.OCLOC.get()) is None:
        pytest.skip(f"no ocloc: {INSTALL}")


@pytest.fixture
def needs_validator() -> None:
    if validator() is None:
        pytest.skip(f"no spirv-val: {INSTALL}")


@pytest.fixture(scope="session")
def queue() -> Queue:
    try:
        return driver.queue()
    except DeviceError as error:
        pytest.skip(f"{error.message}: pip install 'mltriton[xe]'")
