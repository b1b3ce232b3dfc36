"""Runs programs in several ranks by `gnomon launch`, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from distributed.hosts import ROOT, TCP

HERE = Path(__file__).parent


def launch(ranks, *command, limit=100, check=True, **more):
    """The finished job; see `started`."""
    job = started(ranks, *command, **more)
    try:
        out, err = job.communicate(timeout=limit)
    finally:
        job.kill()
    if check:
        assert job.returncode == 0, f"{out[-2000:]}\n{err[-4000:]}"
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def started(ranks, *command, servers=0, network=False, **settings):
    """A job; `settings` are environment variables of gnomon, without their prefix."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    environment |= TCP if network else {}
    environment |= {f"GNOMON_{name.upper()}": str(value) for name, value in settings.items()}
    start = [sys.executable, "-m", "gnomon", "launch", "-n", str(ranks), "-s", str(servers)]
    return subprocess.Popen(
        [*start, sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE, env=environment, cwd=ROOT,
    )  # fmt: skip


def here(ranks, program, *arguments, **more):
    """A job of a program of this folder."""
    return launch(ranks, HERE / program, *arguments, **more)
