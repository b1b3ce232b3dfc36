"""It is told when compiling takes long: seldom, to a terminal or the log, unless unwanted."""

import io
import logging

import pytest

from gnomon import config
from gnomon.runtime.compiler import progress
from gnomon.runtime.compiler.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def told():
    with config.using(tell_compiling=True):
        yield


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def compile_many(told, clock, count, seconds, pause=0.0):
    for _ in range(count):
        clock[0] += pause + seconds
        told.compiled(seconds)


def test_a_terminal_is_told_after_a_second_and_ever_more_seldom(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    told = Progress()
    with told.expecting(20):
        for _ in range(3):
            compile_many(told, clock, 1, 0.4)
            told.ready()
    compile_many(told, clock, 8, 0.5)
    assert screen.getvalue().splitlines() == [
        "gnomon: compiling: 3 kernels, 18 steps left",
        "gnomon: compiling: 11 kernels",
    ]


def test_short_bursts_and_pauses_are_not_told(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    told = Progress()
    compile_many(told, clock, 50, 0.2, pause=1.5)
    assert not screen.getvalue()


def test_a_program_without_a_terminal_has_it_in_its_log(caplog, clock):
    with caplog.at_level(logging.INFO, "gnomon"):
        compile_many(Progress(), clock, 3, 0.4)
    assert [r.getMessage() for r in caplog.records] == ["compiling: 3 kernels"]


def test_the_setting_silences_it(monkeypatch, caplog, clock):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with caplog.at_level(logging.INFO, "gnomon"), config.using(tell_compiling=False):
        compile_many(Progress(), clock, 9, 0.9)
    assert not caplog.records
    assert not screen.getvalue()


def test_a_closed_stream_is_no_terminal(monkeypatch, caplog, clock):
    monkeypatch.setattr("sys.stderr", None)
    with caplog.at_level(logging.INFO, "gnomon"):
        compile_many(Progress(), clock, 2, 0.6)
    assert len(caplog.records) == 1
