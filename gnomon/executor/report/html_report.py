"""`Executor.report`: a program as one HTML page that needs nothing else, for looking at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from html import escape
from typing import NamedTuple

from gnomon.executor.programs.layout import Layout
from gnomon.executor.report.drawing import Box, Column, drawing, unique
from gnomon.executor.report.listing import memory_plan
from gnomon.executor.report.memory_chart import in_bytes, memory_chart
from gnomon.executor.report.profile import Limits, TaskProfile
from gnomon.graph.node import Entry
from gnomon.graph.tasks.task import Task

STYLE = """
:root { color-scheme: light; --ink: #1d2733; --soft: #5d6b7a; --line: #d8dee6; --back: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: #fff; }
main { max-width: 1120px; margin: 0 auto; padding: 24px 28px 60px; }
h1 { font-size: 22px; margin: 0 0 2px; } h2 { font-size: 17px; margin: 34px 0 8px; }
p { margin: 4px 0 10px; color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; }
dl div { border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; }
dt { color: var(--soft); font-size: 12px; } dd { margin: 0; font-size: 18px; font-weight: 600; }
.frame { border: 1px solid var(--line); border-radius: 8px; background: var(--back); }
.scroll { overflow: auto; max-height: 720px; padding: 8px; }
svg { display: block; font: 11px system-ui, sans-serif; }
svg.memory { width: 100%; height: auto; background: #fff; border-radius: 8px; }
.edge { fill: none; stroke: #8b98a8; stroke-width: 1; opacity: .55; }
.node rect { stroke: #66758a; } .node text { text-anchor: middle; fill: var(--ink); }
.node:hover rect { stroke: #000; stroke-width: 2; } .small { font-size: 9.5px; opacity: .8; }
.grid { stroke: var(--line); } .border { stroke: #b3261e; stroke-dasharray: 4 3; }
.axis { fill: var(--soft); } .end { text-anchor: end; }
.life { stroke: #fff; stroke-width: .4; } .life:hover { stroke: #000; stroke-width: 1.2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: 12px; color: var(--soft); border-bottom: 2px solid var(--line); }
th, td { padding: 4px 8px; vertical-align: top; } td { border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; white-space: nowrap; }
tr:target { background: #fff4d6; } tr.step td { color: var(--soft); border: 0; }
.bar { display: block; height: 4px; border-radius: 2px; background: #e6ebf1; margin-top: 3px; }
.bar i { display: block; height: 4px; border-radius: 2px; background: #3b7dd8; }
summary { cursor: pointer; overflow-wrap: anywhere; } pre { background: var(--back); padding: 8px;
 border-radius: 6px; overflow: auto; max-height: 380px; font: 12px/1.4 ui-monospace, monospace; }
"""


class Cost(NamedTuple):
    """What tasks are compared by: their times, or the bytes they move where they are not timed.

    `limits` are the machine's, where they are timed; `total` is that of all tasks.
    """

    limits: Limits | None
    total: float

    def of(self, row: TaskProfile) -> float:
        """That of one task."""
        return row.bytes if self.limits is None else row.seconds

    def share(self, row: TaskProfile) -> float:
        """Its part of the whole."""
        return self.of(row) / self.total if self.total else 0.0

    def told(self, row: TaskProfile) -> str:
        """The cost of a task as people read it."""
        return in_bytes(row.bytes) if self.limits is None else in_time(row.seconds)

    @property
    def what(self) -> str:
        """What it is, within a sentence."""
        return "bytes" if self.limits is None else "time"


def html_report(
    title: str, layout: Layout, rows: Sequence[TaskProfile], limits: Limits | None
) -> str:
    """The HTML page of a program whose tasks were profiled; without `limits` they have no times."""
    plan = memory_plan(layout)
    mode = "training" if layout.mode.differentiate else "prediction"
    cost = Cost(limits, sum(Cost(limits, 0).of(row) for row in rows))
    facts = {
        "tasks": str(len(rows)),
        "steps": str(sum(len(row.steps) for row in rows)),
        "memory between tasks": in_bytes(plan.total),
        "without sharing": in_bytes(plan.unshared),
        "kept parameters": in_bytes(plan.kept),
        "moved": in_bytes(sum(row.bytes for row in rows)),
    }
    if limits is not None:
        rate = sum(r.flops for r in rows) / max(cost.total, 1e-12)
        facts = {"time of a run": in_time(cost.total)} | facts
        facts |= {
            "achieved": f"{rate / 1e9:.3g} GFLOP/s",
            "matrix product here": f"{limits.flops / 1e9:.3g} GFLOP/s",
            "copy here": f"{limits.bandwidth / 1e9:.3g} GB/s",
        }
    cards = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items()
    )
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}: {mode}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{escape(title)}</h1><p>The program for {mode}, as it runs.</p><dl>{cards}</dl>",
            '<h2 id="graph">Graph after fusion</h2>',
            "<p>A box is a task: operators that run as one. The darker, the more of the "
            f"{cost.what} it takes; a click leads to its kernels.</p>",
            f'<div class="frame scroll">{_graph(layout, rows, cost)}</div>',
            '<h2 id="memory">Memory</h2>',
            "<p>A rectangle is a value between tasks: from the task that makes it to the one that "
            "reads it last, at its place in the block.</p>",
            f'<div class="frame">{memory_chart(plan, layout.forward)}</div>',
            '<h2 id="kernels">Tasks and kernels</h2>',
            f"<p>By {cost.what}."
            + (" Bars compare with this machine's measured limits.</p>" if limits else "</p>"),
            _table(rows, cost),
            "</main></body></html>\n",
        )
    )


def _graph(layout: Layout, rows: Sequence[TaskProfile], cost: Cost) -> str:
    made = {layout.aliases.get(e, e): r.number for r in rows for e in r.task.made}
    made.update({e: r.number for r in rows for e in r.task.made})
    edges = unique(
        (made[e], r.number) for r in rows for e in r.task.reads if made.get(e, r.number) < r.number
    )
    forward = [r.number for r in rows if r.number < layout.forward]
    backward = [r.number for r in rows if r.number >= layout.forward]
    boxes: dict[Hashable, Box] = {r.number: _box(r, cost) for r in rows}
    return drawing([Column(forward), Column(backward, up=True)], edges, boxes)


def _box(row: TaskProfile, cost: Cost) -> Box:
    fill = f"hsl(28 90% {97 - 42 * min(1.0, cost.share(row) * 6):.0f}%)"
    detail = f"{cost.told(row)} {_kinds(row.task)}" if row.steps else "a view"
    tooltip = f"{row.task.name}\nreads {_names(row.task.reads)}\nmakes {_names(row.task.made)}"
    return Box(row.task.name, detail, tooltip, fill, f"task{row.number}")


def _kinds(task: Task) -> str:
    names = (n.op.name.removeprefix("_backward_") for n in task.nodes if n.op is not None)
    return "+".join(dict.fromkeys(names)) or "values"


def _names(entries: Iterable[Entry]) -> str:
    return ", ".join(map(repr, entries)) or "nothing"


def _table(rows: Sequence[TaskProfile], cost: Cost) -> str:
    names = (
        ["time", "share", "moved", "GB/s", "GFLOP/s"]
        if cost.limits
        else ["steps", "share", "moved"]
    )
    head = "".join(f'<th class="number">{name}</th>' for name in names)
    ranked = sorted(rows, key=lambda r: -cost.of(r))
    body = "".join(_row(r, cost) for r in ranked)
    return f"<table><thead><tr><th>task</th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: TaskProfile, cost: Cost) -> str:
    limits = cost.limits
    steps = "".join(
        f"{escape(s.name)}: {in_time(s.seconds) if limits else in_bytes(s.bytes)}\n"
        for s in row.steps
    )
    name = f"{row.number} {row.task.name}"
    inner = (
        f"<details><summary>{escape(name)}</summary>"
        f"<pre>{escape(_kinds(row.task))}\n{steps}\n{escape(row.plan)}</pre></details>"
    )
    seconds = row.seconds
    cells = [
        in_time(seconds) if limits else str(len(row.steps)),
        f"{cost.share(row):.1%}" if cost.total else "",
        in_bytes(row.bytes) if row.bytes else "",
    ]
    if limits is not None:
        cells.append(_rate(row.bytes, seconds, limits.bandwidth))
        cells.append(_rate(row.flops, seconds, limits.flops))
    rest = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return f'<tr id="task{row.number}"><td>{inner}</td>{rest}</tr>\n'


def _rate(work: int, seconds: float, limit: float) -> str:
    if not work or not seconds:
        return ""
    rate = work / seconds
    part = min(rate / limit, 1.0)
    return f'{rate / 1e9:.3g}<span class="bar"><i style="width:{part:.0%}"></i></span>'


def in_time(seconds: float) -> str:
    """Seconds as people read them.

    >>> in_time(0.0021), in_time(3.4e-5), in_time(2)
    ('2.1 ms', '34 us', '2 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
