"""Source distributions from the registry: downloaded by name, unpacked, not built."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

# What the packages' metadata is made with; pip asks for it before it gives the sources.
TOOLS = ("setuptools==80.9.0", "setuptools-scm", "setuptools-rust", "wheel", "packaging", "jinja2")


def fetch_sources(folder: Path, package: str, kept: str = "", environment: Mapping[str, str] | None = None) -> None:
    """Put the files of a package, `name==version`, that begin with `kept` into a folder, and mark it as installed."""
    name, _, version = package.partition("==")
    pip, tools = [sys.executable, "-m", "pip"], folder / "tools"
    subprocess.run([*pip, "install", "-q", "--target", str(tools), *TOOLS], check=True)
    path = os.pathsep.join([str(tools), os.environ.get("PYTHONPATH", "")])
    command = [*pip, "download", "-q", "--no-deps", "--no-binary", name, "--no-build-isolation", "-d", str(folder)]
    subprocess.run([*command, package], check=True, env=os.environ | {"PYTHONPATH": path} | dict(environment or {}))
    with tarfile.open(next(folder.glob(f"{name.replace('-', '_')}-*.tar.gz"))) as archive:
        for member in archive.getmembers():
            _, _, member.name = member.name.partition("/")
            if member.isfile() and member.name.startswith(kept):
                archive.extract(member, folder, filter="data")
    folder.joinpath(f"{name.replace('-', '_')}-{version}.dist-info").mkdir(exist_ok=True)
