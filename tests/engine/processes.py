"""Programs that use an engine, run in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import pytest

# who runs the tests may ignore interrupts, as shells let programs in the background do
HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def run(program: str, interrupt_after: str | None = None, limit: float = 30) -> tuple[int, str]:
    """Run a Python program; Ctrl-C it once it printed the line `interrupt_after`."""
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", HEARD + textwrap.dedent(program).lstrip()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    while interrupt_after is not None and (line := child.stdout.readline()):
        lines.append(line)
        if line.strip() == interrupt_after:
            time.sleep(0.1)
            child.send_signal(signal.SIGINT)
            break
    try:
        rest, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        child.kill()
        pytest.fail("the process hangs: " + "".join(lines) + child.communicate()[0])
    return child.returncode, "".join(lines) + rest


HEAD = """
    import os, threading, time
    from gnomon import engine
    e = engine.get()
    v = e.new_variable("v")
"""
