"""The parent of the fuzzer: starts children, takes findings, makes programs small, keeps them.

A child that ends by a signal is a finding as well; the program is the last one in its journal.
What it says at its end (Python's stacks, an assertion of LLVM's) is kept with the finding, and so
are the seed and the whole journal, addresses included: an earlier program may be the cause.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = 250  # a child makes so many, then another starts: memory of kernels goes with it
PATIENCE = 900.0  # seconds for a program to be run again
LAST_WORDS = 6000  # characters of what a child that crashed had said


@dataclass
class Report:
    """What has been tried, and what was found: one program for each way to fail."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = ", ".join(f"{n} {name}" for name, n in sorted(self.counts.items()))
        return f"{rows}; {len(self.findings)} findings"


def hunt(seconds: float, seed: int, keep: Path | None = None, say: Any = None) -> Report:
    """Try random programs for so long."""
    report, end = Report(), time.monotonic() + seconds
    while time.monotonic() < end:
        explore(seed, end, report, keep, say)
        seed += 1
        if say is not None:
            say(f"{report}")
    return report


def explore(seed: int, end: float, report: Report, keep: Path | None, say: Any) -> None:
    """One child's programs."""
    with tempfile.NamedTemporaryFile() as journal, tempfile.TemporaryFile() as errors:
        with subprocess.Popen(
            command("explore", str(seed), str(PROGRAMS), journal.name),
            cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as child:  # fmt: skip
            listen(child, end, lambda news: note(news, report, keep, say))
        code = child.returncode
        if code and not (code == -signal.SIGTERM and time.monotonic() > end):
            history = Path(journal.name).read_text()
            rows = [json.loads(row) for row in history.splitlines()]
            lines = [line for number, line, _ in rows if number == rows[-1][0]]
            errors.seek(0)
            about = errors.read().decode(errors="replace")[-LAST_WORDS:]
            finding = (
                f"{ended(code)}\nseed {seed}, program {rows[-1][0] if rows else 'none'}\n{about}"
            )
            note({"finding": finding, "lines": lines, "history": history}, report, keep, say)


def listen(child: subprocess.Popen[str], end: float, take: Callable[[Any], None]) -> None:
    """Take what a child says until it ends, which it does when the time is over."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.endswith("\n"):  # else the child was ended while it wrote
            take(json.loads(line))
        if time.monotonic() > end:
            child.terminate()


def note(news: dict[str, Any], report: Report, keep: Path | None, say: Any) -> None:
    """Count what a child says, or take its finding."""
    if "finding" not in news:
        report.counts["programs"] += 1
        report.counts.update(news)
        return
    what = kind_of(news["finding"])
    report.counts["failures"] += 1
    if what in report.findings:
        return
    alone = kind_of(outcome(news["lines"]) or "nothing") == what
    small = smallest(news["lines"], what) if alone else news["lines"]
    report.findings[what] = small
    about = news["finding"] + ("" if alone else "\nnot found again in a process of its own")
    text = "\n".join(["# " + row for row in about.splitlines()] + small) + "\n"
    if say is not None:
        say(text)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{len(report.findings):03}.py").write_text(text)
        if "history" in news:
            (keep / f"{len(report.findings):03}.journal").write_text(news["history"])


def kind_of(finding: str) -> str:
    """What makes two findings the same: the place of an error, or the first line."""
    head = finding.splitlines()[0]
    return head[head.rindex("[") :] if head.endswith("]") and "[" in head else head


def ended(code: int) -> str:
    """How a child ended, in words."""
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def smallest(lines: list[str], what: str) -> list[str]:
    """The program without the lines that the finding does not need."""
    k = 0
    while k < len(lines):
        fewer = lines[:k] + lines[k + 1 :]
        if kind_of(outcome(fewer) or "nothing") == what:
            lines = fewer
        else:
            k += 1
    return lines


def outcome(lines: list[str]) -> str:
    """What a program does in a process of its own: nothing, or a finding."""
    try:
        run = subprocess.run(
            command("replay"), cwd=ROOT, input=json.dumps(lines), capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ended(-signal.SIGALRM)
    if run.returncode:
        return ended(run.returncode)
    return str(json.loads(run.stdout.splitlines()[-1])["finding"])


def command(*arguments: str) -> list[str]:
    """The command line of a child."""
    return [sys.executable, "-m", "tests.fuzz.child", *arguments]
