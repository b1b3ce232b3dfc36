"""The fuzzer tries for some seconds, and would find what it is for (`python -m tests.fuzz -h`)."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gnomon.base import ShapeError
from tests.fuzz.child import Journal, explore, fresh, replay
from tests.fuzz.hunt import Report, hunt, kind_of, note, outcome, smallest
from tests.fuzz.world import Finding, World, attempt


def test_nothing_is_found_in_some_seconds(tmp_path):
    report = hunt(8.0, 20261121, tmp_path)
    assert report.counts["programs"]
    assert report.findings == {}, "\n".join(p.read_text() for p in tmp_path.iterdir())


def test_a_crash_is_found_and_made_small():
    lines = ["t1 = w.leaf((2, 3), 'float32', 'padded', 1)", "import ctypes", "e2 = t1 + 1",
             "ctypes.string_at(0)", "w.put(t1, 'saveto', e2)"]  # fmt: skip
    found = outcome(lines)
    assert found == "ended by SIGSEGV"
    assert smallest(lines, found) == ["import ctypes", "ctypes.string_at(0)"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("t.numpy()[0] = 9; raise ValueError('takes none')", "a refused statement has changed"),
        ("w.blocks[0][0] = 9; w.put(t, 'saveto', 1)", ""),
        ("w.check(t, [b + 1 for b in w.blocks], None)", "memory outside the destination"),
        ("w.check(t, [b.copy() for b in w.blocks], [t.numpy() + 1])", "wrong result"),
        ("shadow.expr = 1 / 0", "ZeroDivisionError"),
        ("undefined_name", ""),
        ("shadow.flip(t, 7)", ""),
        ("w.put(t, 'saveto', t)", ""),
    ],
)
def test_what_is_a_finding(line, words):
    found = replay(["t = w.leaf((3,), 'float32', 'strided', 4)", line])
    assert (words in found) if words else not found


def test_errors_must_be_in_words():
    def ours(message: str):
        def complain():
            raise ShapeError(message)

        return complain

    def careless():
        np.zeros(3)[np.float32(1)]

    assert attempt(World(), ours("flip: argument 'axis': ...")) == ""
    assert "without words" in attempt(World(), ours(""))
    assert attempt(World(), careless) == ""  # another library's, in the program's own line

    def find():
        raise Finding("here")

    assert attempt(World(), find) == "here"


def test_findings_are_told_apart_by_their_place():
    assert kind_of("TypeError: 3 [a.py:1 f > b.py:2 g]") == "[a.py:1 f > b.py:2 g]"
    assert kind_of("wrong result\ngot [1]") == "wrong result"


def test_leaves_lie_in_guarded_memory():
    w = fresh()["w"]
    for layout in ("dense", "padded", "strided", "reversed", "transposed"):
        for shape in ((), (3,), (2, 0), (2, 3, 4)):
            t = w.leaf(shape, "int32", layout, 3)
            assert t.shape == shape
            t.numpy()[...] = 9
            assert (w.blocks[-1] == 9).sum() == t.numpy().size


def test_a_crash_that_does_not_come_again_is_kept_with_all_that_is_known(tmp_path):
    news = {"finding": "ended by SIGABRT\nseed 3, program 7\nFatal", "lines": ["x = 1", "y = 2"]}
    report = Report()
    note(news | {"history": "[6, ...]"}, report, tmp_path, None)
    text = (tmp_path / "001.py").read_text()
    assert report.findings == {"ended by SIGABRT": ["x = 1", "y = 2"]}
    assert "# seed 3, program 7" in text
    assert "not found again" in text
    assert (tmp_path / "001.journal").read_text() == "[6, ...]"


def test_a_child_notes_its_lines_and_where_tensors_lie(tmp_path):
    path = tmp_path / "journal"
    explore(5, 3, Journal(str(path)))
    rows = [json.loads(row) for row in path.read_text().splitlines()]
    assert {number for number, _, _ in rows} == {0, 1, 2}
    assert any(at for _, _, at in rows)
