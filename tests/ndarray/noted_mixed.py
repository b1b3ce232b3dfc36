"""Random programs for `test_notes_mixed.py`: short training loops, several changes in each.

Programs in a row, a *block*, have the same operators and variables. So their kernels, and most
compiled steps, are those of programs before, and the records of one fit the next one's. A program
is one loop, or two by turns in one thread, or two at once in threads of their own. Changes come
once or more, are undone again, and meet others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from ndarray.noted import Arrays, Body, Loop, State, Turn
from ndarray.noted_changes import CHANGES
from ndarray.noted_operators import OPERATORS, STEADY

import gnomon as mx
from gnomon import config

STEPS = 6  # of each loop
BLOCK = 1000  # programs with the same operators and variables
NUMBERS = (2, 2, 2, -1, 0, 1)  # of operators
ALTERING = {"seeded"}  # changes that other threads see


class Block:
    """What programs in a row have in common."""

    def __init__(self, number: int) -> None:
        draw = random.Random(number)
        most = 7 if draw.random() < 0.1 else 3
        self.at_once = draw.random() < 0.15
        self.changes = sorted({*CHANGES} - (ALTERING if self.at_once else set()))
        operators = STEADY if self.at_once else OPERATORS
        counts = [draw.randint(1, most) for _ in range(draw.choice((2, 3)))]
        self.bodies = [Body.drawn(draw, count, operators) for count in counts]
        self._arrays = [Arrays(), Arrays()]

    def arrays(self, number: int) -> Arrays:
        """The variables of a loop; new ones where the last program left others."""
        if self._arrays[number].is_worn:
            self._arrays[number] = Arrays()
        return self._arrays[number]


class Program:
    """One or two loops, and whether they have the same variables."""

    def __init__(self, seed: int, block: Block) -> None:
        draw = random.Random(seed)
        self.seed, self._block = seed, block
        count = 2 if block.at_once or draw.random() < 0.2 else 1
        self.is_shared = not block.at_once and draw.random() < 0.3
        self.loops = [Loop(seed + k, block.bodies, _turns(draw, block), draw) for k in range(count)]

    def __repr__(self) -> str:
        how = "at once" if self._block.at_once else "by turns"
        loops = [[(t.body, t.change, t.once_more) for t in loop.turns] for loop in self.loops]
        return f"program {self.seed}, {how}, {loops}"

    def run(self, arrays: Callable[[int], Arrays], programs: bool) -> list[Any]:
        """All that can be seen of it: arrays, and the names of errors.

        `arrays` gives the variables of a loop; `programs` is the setting.
        """
        mx.random.seed(self.seed)
        count = len(self.loops)
        own = [arrays(k) for k in range(1 if self.is_shared else count)]
        states: list[Any] = [None] * count

        def loop(*numbers: int) -> None:
            with config.using(programs=programs):
                for k in numbers:
                    states[k] = State(self.loops[k], own[0 if self.is_shared else k])
                for number, k in product(range(STEPS), numbers):
                    states[k].step(self.loops[k].turns[number])
                for k in numbers:
                    states[k].end()

        if self._block.at_once:
            in_threads([partial(loop, k) for k in range(count)])
        else:
            loop(*range(count))
        return [x for state in states for x in state.seen]


def _turns(draw: random.Random, block: Block) -> list[Turn]:
    """Steps of which about the half are as usual, and others change one of a few things."""
    some = [draw.choice(block.changes) for _ in range(draw.choice((1, 2, 2, 3)))]
    counts = draw.random() < 0.3
    found = []
    for _ in range(STEPS):
        kind = draw.random()
        change = None if kind < 0.5 else "undone" if kind > 0.85 else draw.choice(some)
        body = 0 if draw.random() < 0.75 else draw.randrange(len(block.bodies))
        number = draw.choice(NUMBERS) if counts else 2
        found.append(Turn(body, number, change, draw.random() < 0.5))
    return found


def in_threads(works: Sequence[Callable[[], None]]) -> None:
    """Run each in a thread of its own, and raise what one of them raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
