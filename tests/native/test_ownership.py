"""Which references native functions take: none for what stays, one for what may go meanwhile."""

from __future__ import annotations

import re

import pytest
from native.samples import Leaf, Node, explode

from gnomon.native.unit import Unit
from gnomon.native.words import native


@native
def lent(x: Node) -> object:
    leaf = x.leaf
    return leaf if x.count > 3 else None


@native
def needed_after_a_release(x: Node) -> object:
    leaf = x.leaf
    x.left = None
    return leaf


@native
def needed_no_more(x: Node) -> int:
    leaf = x.leaf
    known = leaf is not None
    x.left = None
    return 3 if known else 4


@native
def moved_at_its_last_use(x: Node, leaf: Leaf) -> object:
    made = explode(leaf)
    x.leaf = made
    return None


@native
def needed_in_the_next_round(x: Node, n: int) -> int:
    first = x.leaf
    count = 0
    for _ in range(n):
        count += 1 if first is None else 0
        x.left = None
    return count


TAKEN = {
    lent: 0,
    needed_after_a_release: 1,
    needed_no_more: 0,
    moved_at_its_last_use: 0,
    needed_in_the_next_round: 1,
}


@pytest.mark.parametrize("function", TAKEN, ids=lambda f: f.__name__)
def test_references_are_taken_where_they_are_needed(function):
    text = Unit((function,)).text
    body = text[text.index(f'native.test_ownership.{function.__name__}"(') :]
    body = body[: body.index("\n}\n")]
    taken = re.findall(r"kit.take\(ptr (?!@None)", body)
    assert len(taken) == TAKEN[function], body
