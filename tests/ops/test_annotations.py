"""Operators of users whose modules do not say `from __future__ import annotations`."""

import pytest

from gnomon.base import ParamError
from gnomon.ops.op import Op, describe
from gnomon.ops.param import declared, param


class Plain(Op):
    """Annotations that are objects, not strings; from Python 3.14 on, made when asked for."""

    rows: int = param(low=1)
    keep: bool = param(False)


class Wrong(Op):
    """A field that no call could set."""

    rows: int = 3


def test_fields_have_the_kinds_of_their_annotations():
    fields = declared(Plain)
    assert fields["rows"].parse("plain", "4") == 4 and fields["keep"].parse("plain", "1") is True
    with pytest.raises(ParamError, match="rows"):
        fields["rows"].parse("plain", "0")


def test_a_plain_value_is_refused_as_a_field():
    with pytest.raises(ParamError, match=r"param\(3\)"):
        describe(Wrong)
