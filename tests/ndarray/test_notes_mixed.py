"""Short random programs with several changes in mid-run, many of them in one process.

Each gives the same with recorded steps that come again as programs, and operator by operator.
"""

from __future__ import annotations

import pytest
from ndarray import noted_mixed, noted_seen
from ndarray.noted import Arrays
from ndarray.noted_steps import begin_anew

from gnomon.ndarray.lazy import notes


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Steps are programs, and their numbers operands, as soon as they come again."""
    monkeypatch.setattr(notes, "OFTEN", 1)
    monkeypatch.setattr(notes, "MOST_NUMBERS", 1)


def agree(number: int, count: int) -> None:
    """Run the first programs of a block twice, and compare what was seen."""
    notes._noting.clear()  # so that a thread of the programs may note
    begin_anew()
    block = noted_mixed.Block(number)
    for seed in range(number * noted_mixed.BLOCK, number * noted_mixed.BLOCK + count):
        program = noted_mixed.Program(seed, block)
        found = program.run(block.arrays, programs=True)
        right = program.run(lambda k: Arrays(), programs=False)
        if noted_seen.is_exact(right):
            assert not noted_seen.difference(found, right), program


@pytest.mark.parametrize("number", [3, 4, 7])  # threads of their own in 4
def test_some_programs(number):
    agree(number, 16)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(100, 200))
def test_a_hundred_thousand_programs(number):
    agree(number, noted_mixed.BLOCK)
