"""Named tuples, which are those of the standard library in all but what their classes cost."""

import copy
import pickle
from collections import namedtuple

import pytest

from gnomon.ground.named import NamedTuple


class Row(NamedTuple):
    """A row with a default."""

    first: int
    last: str = "z"

    @property
    def both(self) -> str:
        return f"{self.first}{self.last}"


def test_named_tuples_are_those_of_typing():
    theirs = namedtuple("Row", ["first", "last"])
    x, other = Row(1), theirs(1, "z")
    assert x == other == (1, "z") and repr(x) == repr(other) and x.both == "1z"
    assert x._asdict() == other._asdict() and x._replace(first=2) == Row._make([2, "z"])
    assert (
        Row._fields == Row.__match_args__ == theirs._fields and Row._field_defaults["last"] == "z"
    )
    assert type(pickle.loads(pickle.dumps(x))) is type(copy.deepcopy(x)) is Row
    for wrong in ((), (1, 2, 3)):
        with pytest.raises(TypeError, match=r"Row.__new__\(\)"):
            Row(*wrong)
    with pytest.raises(AttributeError):
        x.first = 2
    assert not hasattr(x, "__dict__")
    with pytest.raises(ValueError, match="other"):
        x._replace(other=1)
