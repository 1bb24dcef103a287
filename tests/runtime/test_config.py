"""Settings from the environment."""

from __future__ import annotations

import pytest

from mltriton.runtime import config


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (config.NUM_THREADS, "3", 3),
        (config.MAX_SCRATCH, "4096", 4096),
        (config.MAX_SCRATCH, "512K", 512 * 1024),
        (config.MAX_SCRATCH, "2g", 2 * 2**30),
        (config.LAUNCHER, "portable", "portable"),
        (config.DUMP, "tt, warp,", frozenset({"tt", "warp"})),
        (config.CACHE_DIR, "/a/b", "/a/b"),
        (config.ALWAYS_COMPILE, "Yes", True),
        (config.ALWAYS_COMPILE, "0", False),
    ],
)
def test_reads_the_value(monkeypatch, setting, text, value):
    monkeypatch.setenv(setting.name, text)
    assert setting.get() == value


@pytest.mark.parametrize("setting", config.SETTINGS, ids=lambda setting: setting.name)
def test_unset_and_empty_mean_the_default(monkeypatch, setting):
    monkeypatch.delenv(setting.name, raising=False)
    assert setting.get() == setting.default
    monkeypatch.setenv(setting.name, " ")
    assert setting.get() == setting.default


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (config.NUM_THREADS, "0"),
        (config.NUM_THREADS, "many"),
        (config.NUM_THREADS, "-2"),
        (config.MAX_SCRATCH, "12X"),
        (config.MAX_SCRATCH, "K"),
        (config.MAX_SCRATCH, "1KM"),
        (config.LAUNCHER, "fast"),
        (config.ALWAYS_COMPILE, "perhaps"),
        (config.DUMP, "1"),
        (config.DUMP, "tt,ttgir"),
    ],
)
def test_names_the_variable_in_the_error(monkeypatch, setting, text):
    monkeypatch.setenv(setting.name, text)
    with pytest.raises(config.ConfigError, match=f"{setting.name}='{text}'"):
        setting.get()


def test_every_setting_is_listed_and_documented():
    declared = {value.name for value in vars(config).values() if isinstance(value, config.Setting)}
    assert declared == {setting.name for setting in config.SETTINGS}
    assert all(setting.doc.endswith(".") and setting.name.startswith("MLTRITON_") for setting in config.SETTINGS)


def test_the_cache_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", "~/kernels")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config.cache_dir() == str(tmp_path / "kernels")
    monkeypatch.delenv("MLTRITON_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert config.cache_dir() == str(tmp_path / ".cache" / "mltriton")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert config.cache_dir() == "/xdg/mltriton"
