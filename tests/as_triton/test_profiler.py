"""`triton.profiler`: a tree of scopes and launches, and what the viewer makes of it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.as_triton import profiler
from mltriton.as_triton.profiler import viewer
from mltriton.errors import OptionError
from mltriton.runtime import hooks

from .test_import import python


def said(grid, _metadata, arguments):
    return {"name": f"scale {arguments['n']}", "flops32": 1000 * grid[0], "bytes": 8 * arguments["n"]}


@triton.jit(launch_metadata=said)
def scale(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    profiler.finalize()


def launch(n=64):
    scale[(2,)](np.ones(n, np.float32), n, B=32)


def tree_of(name):
    return json.loads(Path(f"{name}.hatchet").read_text(encoding="utf-8"))[0]


def names(node):
    return {child["frame"]["name"]: names(child) for child in node["children"]}


def test_launches_are_leaves_of_the_scopes_around_them(capsys):
    session = profiler.start("run", hook="triton")
    with profiler.scope("layer", {"flops32": 5}):
        launch()
        launch()
        with profiler.cpu_timed_scope("inner"):
            launch(32)
    profiler.deactivate(session)
    launch()
    profiler.activate(session)
    profiler.scope("call")(launch)()
    profiler.finalize(session)
    tree = tree_of("run")
    assert names(tree) == {"layer": {"scale 64": {}, "inner": {"scale 32": {}}}, "call": {"scale 64": {}}}
    leaf = tree["children"][0]["children"][0]["metrics"]
    assert leaf["count"] == 2 and leaf["flops32"] == 4000 and leaf["bytes"] == 1024 and leaf["time (ns)"] > 0
    wanted = ["time/us", "gflop32/s", "count", "avg_time/us", "gbyte/s", "cpu_time/ms"]
    shown, metrics = viewer.parse(wanted, "run.hatchet")
    layer = shown["children"][0]
    total = sum(child["metrics"]["time (ns)"] for child in layer["children"])
    assert metrics == wanted and layer["shown"][:3] == pytest.approx([total / 1e3, 6005 / total, 3])
    assert layer["shown"][3] == pytest.approx(total / 3e3) and layer["shown"][4] == pytest.approx(1280 / total)
    viewer.print_tree(shown, metrics)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("time/us") and len(printed) == 8 and " layer (" in printed[2]
    assert names(viewer.parse(["count"], "run.hatchet", include="inner")[0]) == {"layer": {"inner": {"scale 32": {}}}}
    assert names(viewer.parse(["count"], "run.hatchet", exclude="layer|call")[0]) == {}
    assert names(viewer.parse(["count"], "run.hatchet", threshold=0.5)[0]) == {"layer": {"scale 64": {}}}


def test_sessions_are_separate_and_leave_no_hooks():
    first = profiler.start("first")
    launch()
    second = profiler.start("second")
    launch()
    profiler.finalize(second)
    launch()
    profiler.finalize(first)
    assert not hooks.enter and not hooks.leave
    launch()
    counts = {name: tree_of(name)["children"][0] for name in ("first", "second")}
    assert [counts[name]["metrics"]["count"] for name in counts] == [3, 1]
    assert counts["first"]["frame"]["name"] == "scale" and "flops32" not in counts["first"]["metrics"]


def test_scopes_belong_to_their_thread():
    profiler.start("threads")
    with profiler.scope("main"):
        worker = threading.Thread(target=launch)
        worker.start()
        worker.join()
        launch()
    profiler.finalize()
    assert names(tree_of("threads")) == {"scale": {}, "main": {"scale": {}}}


def test_what_there_is_not():
    for wrong in ({"data": "trace"}, {"mode": "pcsampling"}, {"hook": "other"}, {"context": "python"}):
        with pytest.raises(OptionError):
            profiler.start("wrong", **wrong)
    session = profiler.start("right")
    with pytest.raises(OptionError):
        profiler.finalize(session, output_format="chrome_trace")
    profiler.finalize(session)
    with pytest.raises(OptionError, match="util"):
        viewer.parse(["util"], "right.hatchet")
    with pytest.raises(OptionError, match="no profile"):
        viewer.parse(["count"], "none.hatchet")


def test_it_is_triton_profiler(tmp_path):
    program = "import mltriton.as_triton\nimport triton.profiler as proton\nimport triton.profiler.viewer as v\n"
    program += "proton.start('p')\nproton.finalize()\nprint(v.parse(['count'], 'p.hatchet')[1])"
    assert "['count']" in python("-c", f"import os\nos.chdir({str(tmp_path)!r})\n{program}")
