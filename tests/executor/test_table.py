"""Every registered operation runs, or is said not to run by itself."""

from __future__ import annotations

from mltriton.dialects.registry import operations
from mltriton.executor.table import FLOW, OPERATIONS, STRUCTURAL


def test_every_operation_is_in_exactly_one_table() -> None:
    tables = [set(OPERATIONS), set(FLOW), set(STRUCTURAL)]
    for name, cls in operations().items():
        assert sum(cls in table for table in tables) == 1, name


def test_tables_hold_nothing_but_registered_operations() -> None:
    assert set(OPERATIONS) | set(FLOW) | set(STRUCTURAL) == set(operations().values())
