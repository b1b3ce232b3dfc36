"""Runs programs in several ranks by `gnomon launch`, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from distributed.hosts import ROOT, TCP

HERE = Path(__file__).parent


def launch(ranks, *command, servers=0, limit=100, check=True, network=False, **settings):
    """The finished job; `settings` are environment variables of gnomon, without their prefix."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    environment |= TCP if network else {}
    environment |= {f"GNOMON_{name.upper()}": str(value) for name, value in settings.items()}
    start = [sys.executable, "-m", "gnomon", "launch", "-n", str(ranks), "-s", str(servers)]
    done = subprocess.run(
        [*start, sys.executable, *map(str, command)], capture_output=True, text=True,
        timeout=limit, check=False, env=environment, cwd=ROOT,
    )  # fmt: skip
    if check:
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def here(ranks, program, *arguments, **more):
    """A job of a program of this folder."""
    return launch(ranks, HERE / program, *arguments, **more)
