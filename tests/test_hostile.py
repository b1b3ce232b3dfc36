"""Whatever is public may be called with anything: errors come of it, no crash, no hang."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import hostile
import pytest

ROOT = Path(__file__).parent.parent
HOUR = 3600


def attack(seed: int, count: int, folder: Path) -> None:
    """One child; AssertionError with its last calls unless it comes to its end."""
    log = folder / f"calls{seed}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, hostile.__file__, str(seed), str(count), str(log)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    calls = log.read_text().splitlines() if log.exists() else []
    told = "\n".join([*calls[-3:], done.stderr[-1500:]])
    assert done.returncode == 0 and calls[-1] == "ended", f"seed {seed}: {done.returncode}\n{told}"


@pytest.mark.parametrize("seed", [1, 2])
def test_some_hostile_calls(seed, tmp_path):
    attack(seed, 150, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(2 * HOUR)
def test_an_hour_of_hostile_calls(tmp_path):
    began, seed = time.monotonic(), 1000
    while time.monotonic() - began < HOUR:
        attack(seed, 1000, tmp_path)
        seed += 1
    print(f"{seed - 1000} seeds of 1000 steps")


@pytest.mark.long
@pytest.mark.timeout(2 * HOUR)
def test_every_slot_of_what_users_hold():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "hostile_slots.py"), "0", "1"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith(" 0 crashes\n"), done.stdout
