"""What tests of arrays share: recipes that come by family, compared with the usual way."""

from __future__ import annotations

import pytest

from gnomon.ndarray import derivative
from gnomon.ndarray.lazy import families, invoke, trace
from gnomon.ndarray.lazy.recipe import template_for
from gnomon.runtime.kernels.kernel import Kernel


def held(template):
    """What the blocks of a template's steps hold, and where operands go, by slot."""
    copy = template.reserve()
    template.give_back(copy)
    steps = [held_by(step) for step in copy.steps]
    moved = template.bytes if len(steps) == 1 else 0  # of several, each is taken to grow alike
    return steps, sorted(template.places), moved


def held_by(step):
    if not isinstance(step.keep[0], Kernel):  # a product: the library's own objects differ
        kept = getattr(step, "implementation", None)
        return type(step), kept, step.bytes, step.flops, step.work
    kernel, block = step.keep[:2]
    words, args = list(block.words), kernel.signature.args
    slots = dict(zip(args, words[len(words) - len(args) :], strict=True))
    named = {s: n for s, n in slots.items() if s[0] not in ("leaf", "scratch")}
    return (
        kernel.address,
        words[: len(words) - len(args)],
        named,
        {slot: slots[slot] != 0 for slot in args if slot[0] == "scratch"},
        step.work,
    )


@pytest.fixture
def served(monkeypatch):
    """How many recipes came by family; each is compared with what is made the usual way."""
    counts = []
    monkeypatch.setattr(families, "_known", {})
    member, current = families._member, []

    def compared(*given):
        recipe = member(*given)
        work = current[-1]()
        counts.append(work.name)
        assert held(recipe.template) == held(template_for(work)[0])
        assert not recipe._prepared or recipe.address
        return recipe

    def of_one(op, data, make):
        current.append(lambda: make()[0])
        return families.recipe_of_one(op, data, make)

    def like(outline, work, given):
        current.append(lambda: work)
        return families.recipe_like(outline, work, given)

    monkeypatch.setattr(families, "_member", compared)
    monkeypatch.setattr(invoke, "recipe_like", like)
    monkeypatch.setattr(invoke, "recipe_of_one", of_one)
    monkeypatch.setattr(trace, "recipe_like", like)
    monkeypatch.setattr(derivative, "recipe_like", like)
    trace.EMPTY.after.clear()
    return counts
