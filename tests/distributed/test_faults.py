"""Ranks that die, stop, raise, hang or disagree: the job ends soon, with one message."""

import contextlib
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
from distributed import job

from gnomon.launch import command as launch

MESSAGES = {
    "kill": r"rank {who} \(host \S+, process \d+\) (died|was killed).*; the job ends",
    "stop": r"rank {who} \(host \S+, process \d+\) gave no sign of life for 1 s; the job ends",
    "raise": r"rank {who} \(.*\) failed: ValueError: no such picture; the job ends",
    "exit": r"rank {who} \(.*\) does the end of the program, while .* does push of key 'w' of",
    "hang": r"push of key 'w' .* is not done after 3 s: rank {who} \(.*\) is at pull of key 'w'",
    "stuck": r"push of key 'w' .* not done after 3 s: rank {who} \(.*\) did not (ask|say) where",
    "shape": r"rank {who} \(.*\) does init .* of key 'other' of shape \(3,\) in float32, while",
    "order": r"rank {who} \(.*\) does barrier .*, while rank \d \(.*\) does push of key 'w' of",
    "sum": r"rank \d \(.*\) does sum of 'mean' of shape \((3|4),\) in float64, round 0, while rank",
    "absent": r"rank \d .* waits for rank {who} \(.*\) in sum of 'mean' .* not done after 3 s",
    "late": r"rank {who} \(host \S+\) did not come to kvstore.create within 3 s; the job ends",
    "link": r"rank \d \(host \S+, process \d+\) died: its connection was closed",
}


def faulty(how, who, step, ranks=3):
    """A job with a fault, which must end with one message and leave nothing behind."""
    settings = {"dist_heartbeat_seconds": 1, "dist_timeout_seconds": 3}
    tag = f"job-{time.monotonic_ns()}"
    done = job.here(ranks, "faults.py", how, who, step, tag, check=False, limit=60, **settings)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.endswith("; the job ends")]
    assert len(said) == 1, done.stderr
    assert re.search(MESSAGES[how].format(who=who), said[0]), said[0]
    assert not left_behind(tag)


def left_behind(tag):
    """Processes of the job of that tag which still run, a moment later."""
    for _ in range(40):
        found = processes(tag)
        if not found:
            break
        time.sleep(0.1)
    return found


def processes(*words):
    """The numbers of processes that have these words in their command line."""
    every = Path("/proc").glob("[0-9]*/cmdline")
    return [int(p.parent.name) for p in every if all(word in command(p) for word in words)]


SIGNALS = {
    "kill": signal.SIGKILL,
    "stop": signal.SIGSTOP,
    "pause": signal.SIGSTOP,  # goes on soon afterwards
    "interrupt": signal.SIGINT,
    "terminate": signal.SIGTERM,
}


def signalled(how, who, after, ranks=3):
    """A job of which a rank gets a signal so many seconds after the processes began.

    It goes on to the right result, which the program checks, or ends with one message about that
    rank; in either case soon, and it leaves nothing behind.
    """
    settings = {"dist_heartbeat_seconds": 1, "dist_timeout_seconds": 10}
    tag = f"job-{time.monotonic_ns()}"
    launcher = job.started(ranks, job.HERE / "faults.py", "none", 0, -1, tag, **settings)
    with launcher:
        while len(programs := [p for p in processes(tag) if not is_launcher(p)]) < ranks:
            time.sleep(0.02)
        victim = next(p for p in programs if rank_of(p) == who)
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):  # it has come to its end
            os.kill(victim, SIGNALS[how])
            if how == "pause":
                time.sleep(0.5)
                os.kill(victim, signal.SIGCONT)
        try:
            _, errors = launcher.communicate(timeout=30)
        finally:
            launcher.kill()
    said = [line for line in errors.splitlines() if line.endswith("; the job ends")]
    assert len(said) == (launcher.returncode != 0), errors
    assert all(re.search(rf"rank {who} \(host \S+, process {victim}\) ", line) for line in said), (
        said
    )
    assert not left_behind(tag)


def rank_of(process):
    words = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return next(
        int(w.partition(b"=")[2])
        for w in words
        if w.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK="))
    )


def is_launcher(process):
    return "launch" in command(Path(f"/proc/{process}/cmdline"))


def parent(process):
    about = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return int(about.rpartition(")")[2].split()[1])


def command(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("how", "who"),
    [
        ("kill", 1),
        ("stop", 0),
        ("raise", 2),
        ("hang", 1),
        ("stuck", 0),
        ("shape", 2),
        ("order", 0),
        ("sum", 0),
        ("absent", 2),
        ("late", 1),
    ],
)
def test_a_fault_ends_the_job_with_one_message(how, who):
    faulty(how, who, step=5)


@pytest.mark.parametrize("victim", ["gnomon launch", "its proxy"])
def test_ranks_end_with_what_started_them(victim):
    tag = f"job-{time.monotonic_ns()}"
    launcher = job.started(2, job.HERE / "faults.py", "kill", 0, -1, tag)
    with launcher:
        while len(ranks := [p for p in processes(tag) if not is_launcher(p)]) < 2:
            time.sleep(0.05)
        chain = [ranks[0]]
        while chain[-1] != launcher.pid:
            chain.append(parent(chain[-1]))
        *_, proxy, _, started = chain
        os.kill(proxy if victim == "its proxy" else started, signal.SIGKILL)
        assert launcher.wait(30) != 0
    assert not left_behind(tag)


@pytest.mark.parametrize(("how", "who", "after"), [("stop", 2, 0.05), ("interrupt", 1, 0.5)])
def test_a_signal_may_come_while_the_job_starts(how, who, after):
    signalled(how, who, after)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_hundred_signals_at_any_moment():
    draw, before = random.Random(12), set(launch._segments())
    for _ in range(100):
        signalled(draw.choice(sorted(SIGNALS)), draw.randrange(3), draw.uniform(0, 4))
    assert set(launch._segments()) <= before


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_a_hundred_faults():
    draw = random.Random(11)
    for _ in range(100):
        how = draw.choice(sorted(MESSAGES))
        faulty(how, draw.randrange(3), step=draw.randrange(300))
