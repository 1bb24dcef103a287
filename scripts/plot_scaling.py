"""Draw how work scales with threads: python scripts/plot_scaling.py MEASUREMENTS.json PICTURE.svg

Takes what `mltriton bench scaling --json MEASUREMENTS.json` wrote; needs the extra `plot` (matplotlib). Speed is that
of the shortest call, as a multiple of one thread's; the dashed line is as many times as fast as there are threads.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib import pyplot

Rows = list[dict[str, Any]]

COLOURS = {"mltriton": "C0", "numpy": "C1", "torch": "C2"}


def draw(rows: Rows, picture: Path) -> None:
    """Draw one panel for each job of `rows` into the file `picture`."""
    pyplot.rcParams["svg.fonttype"] = "none"
    names = list(dict.fromkeys(row["job"] for row in rows))
    figure, panels = pyplot.subplots(2, (len(names) + 1) // 2, figsize=(12, 6.5), squeeze=False)
    for name, axes in zip(names, panels.flat, strict=False):
        _draw_job(axes, [row for row in rows if row["job"] == name])
        axes.set_title(name, fontsize=9)
    panels.flat[0].legend(fontsize=8)
    figure.supxlabel("threads")
    figure.supylabel("speed, multiple of one thread's")
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})


def _draw_job(axes: Any, rows: Rows) -> None:
    threads = [int(row["problem"].split()[0]) for row in rows]
    axes.plot(threads, threads, "k--", linewidth=0.7)
    for library in rows[0]["times"]:
        rates = [row["work"] / row["times"][library]["minimum"] if library in row["times"] else None for row in rows]
        speeds = [rate and rate / rates[0] for rate in rates]
        axes.plot(threads, speeds, "o-", color=COLOURS[library], markersize=3, label=library)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(threads, [str(count) for count in threads])


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
