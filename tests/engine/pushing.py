"""What the tests of the engine share."""

from __future__ import annotations


def push_and_wait(push, function, const=(), mutate=()):
    """Push by the bound method `push` and wait for it, so that its error is raised somewhere."""
    push(function, None, const, mutate)
    if mutate:
        push.__self__.wait_for_var(*mutate)
    else:
        push.__self__.wait_for_all()
