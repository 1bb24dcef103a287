"""How many threads launches use: affinity, quotas of control groups, settings."""

from __future__ import annotations

import math
import os

import pytest

from mltriton.runtime import config
from mltriton.runtime.native import cpus, launcher

GROUPS = {
    "version 2, in a container": ("0::/", {"cpu.max": "150000 100000"}, 1.5),
    "version 2, without a limit": ("0::/", {"cpu.max": "max 100000"}, math.inf),
    "version 2, no file": ("0::/", {}, math.inf),
    "version 2, of the group above": ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
    "version 2, the least": ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "50000 100000"}, 0.5),
    "version 2, the host's path": ("0::/docker/1234", {"cpu.max": "200000 100000"}, 2),
    "version 1": ("4:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 2.5),
    "version 1, without a limit": ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
    "version 1, another controller": ("5:memory:/", {"cpu.max": "100000 100000"}, math.inf),
    "something else": ("0::/\nnonsense", {"cpu.max": "many few"}, math.inf),
}


@pytest.mark.parametrize("name", GROUPS)
def test_quotas_of_control_groups(name, tmp_path, monkeypatch):
    membership, files, expected = GROUPS[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    (tmp_path / "self").write_text(membership + "\n")
    monkeypatch.setattr(cpus, "_ROOT", tmp_path)
    monkeypatch.setattr(cpus, "_MEMBERSHIP", tmp_path / "self")
    assert cpus.quota.__wrapped__() == (math.inf if expected is None else expected)


@pytest.mark.parametrize(("quota", "expected"), [(0.2, 1), (1.0, 1), (1.5, 2), (math.inf, 8), (64.0, 8)])
def test_the_least_of_affinity_and_quota(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpus, "quota", lambda: quota)
    assert cpus.available_cpus() == expected


@pytest.mark.parametrize("text", ["0", "-1", "5000", "two", "1.5", "99999999999999999999"])
def test_a_number_of_threads_that_cannot_be_is_a_named_error(monkeypatch, text):
    monkeypatch.setenv("MLTRITON_NUM_THREADS", text)
    with pytest.raises(config.ConfigError, match="is not a number of threads from 1 to 1024"):
        config.NUM_THREADS.get()


@pytest.mark.parametrize("count", [0, -1, 1025])
def test_setting_a_number_of_threads_that_cannot_be_is_a_named_error(mode, count):
    with pytest.raises(config.ThreadsError, match="from 1 to 1024"):
        launcher.set_num_threads(count)
