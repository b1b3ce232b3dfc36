"""Slots that a finaliser sets to None after native code compared them with it."""

from __future__ import annotations

import random

import pytest
from native.samples import Leaf, Node, node

from gnomon import config
from gnomon.native.serve import served
from gnomon.native.words import native


@pytest.fixture(autouse=True)
def natively():
    """Native code is served, whatever the environment says."""
    config.set("native", True)
    yield
    config.reset("native")
    Leaf.last = None


@native
def count_of(x: Node) -> int:
    return x.count


@native
def emptied_and_read(x: Node, leaf: Leaf) -> object:
    if x.left is None:
        return 0
    x.leaf = leaf  # where the one before goes, anything may be done
    return x.left.count


@native
def emptied_and_set(x: Node, leaf: Leaf) -> object:
    if x.left is None:
        return 0
    x.leaf = leaf
    x.left.count = 3
    return 1


@native
def emptied_and_passed_on(x: Node, leaf: Leaf) -> object:
    if x.left is None:
        return 0
    x.leaf = leaf
    return count_of(x.left)


@native
def emptied_and_returned(x: Node, leaf: Leaf) -> Node:
    if x.left is None:
        return x
    x.leaf = leaf
    return x.left


@native
def emptied_and_kept(x: Node, leaf: Leaf) -> object:
    if x.left is None:
        return 0
    x.leaf = leaf
    left = x.left
    return left.count


@native
def emptied_and_chosen(x: Node, leaf: Leaf) -> object:
    if x.left is None:
        return 0
    x.leaf = leaf
    left = x.left if x.count != -1 else x
    other = left
    return count_of(other)


EMPTIED = {
    emptied_and_read: "'NoneType' object has no attribute 'count'",
    emptied_and_set: "'NoneType' object has no attribute 'count'",
    emptied_and_passed_on: "count_of: argument 'x' is not to be None",
    emptied_and_returned: "return: Node is expected, not None",
    emptied_and_kept: "'NoneType' object has no attribute 'count'",
    emptied_and_chosen: "count_of: argument 'x' is not to be None",
}


@pytest.mark.parametrize("function", EMPTIED, ids=lambda f: f.__name__)
def test_a_slot_may_be_emptied_once_it_was_compared_with_none(function):
    (fast,) = served(function)
    x = node(random.Random(0))
    x.left, x.leaf = node(random.Random(0)), Leaf("old")

    def empty():
        x.left = None

    Leaf.last = empty
    with pytest.raises((AttributeError, TypeError), match=EMPTIED[function]):
        fast(x, Leaf("new"))
