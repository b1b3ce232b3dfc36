"""Arrays, and all that they hold, refuse assignments: native code reads it as it is."""

from __future__ import annotations

from types import MemberDescriptorType

import pytest

from gnomon import engine, nd

JUNK = [None, 0, 2**70, "a", [3], {}, object()]


def slots(thing) -> list[str]:
    """The slots of an object, those of its bases too."""
    return [
        name
        for kind in type(thing).__mro__
        for name, slot in vars(kind).items()
        if isinstance(slot, MemberDescriptorType)
    ]


def held() -> list[object]:
    """What arrays hold: memory, layouts, groups with their trace nodes, rules and recipes."""
    x, y = nd.ones((3,)), nd.ones((3,))
    (x + y).wait_to_read()
    z = x + y
    group = z._pending_in
    trace = group.trace
    return [x, z, x._chunk, x._layout, group, group.own, trace, trace.rule, trace.sole,
            engine.get().new_variable()]  # fmt: skip


@pytest.mark.parametrize("number", range(10))
def test_what_arrays_hold_refuses_assignments(number):
    thing = held()[number]
    for name in slots(thing):
        if name == "__weakref__":
            continue
        before = getattr(thing, name, None)
        for junk in JUNK:
            with pytest.raises(AttributeError, match=name):
                setattr(thing, name, junk)
        with pytest.raises(AttributeError, match=name):
            delattr(thing, name)
        assert getattr(thing, name, None) is before
    with pytest.raises(AttributeError):
        thing.other = 1
    assert (nd.ones((3,)) + nd.ones((3,))).asnumpy().tolist() == [2, 2, 2]


def test_arrays_without_anything_in_them_are_refused():
    bare = object.__new__(nd.NDArray)
    for statement in (
        lambda: bare + nd.ones((3,)),
        lambda: nd.ones((3,)) + bare,
        bare.wait_to_read,
        lambda: nd.exp(bare),
        lambda: bare._chunk,
    ):
        with pytest.raises((AttributeError, TypeError)):
            statement()
