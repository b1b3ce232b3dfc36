"""Errors: what kinds they are, what pickles keep of them, and hints at names."""

import copy
import pickle

import pytest

from gnomon import base
from gnomon.gluon import nn


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (base.ShapeError, ValueError),
        (base.DTypeError, TypeError),
        (base.ParamError, ValueError),
        (base.FormatError, ValueError),
        (base.UnknownNameError, KeyError),
        (base.DeviceError, RuntimeError),
        (base.EngineError, RuntimeError),
    ],
)
def test_errors_are_mxnet_errors_and_pythons(error, builtin):
    raised = error("a plain sentence")
    assert isinstance(raised, base.MXNetError)
    assert isinstance(raised, builtin)
    assert str(raised) == str(pickle.loads(pickle.dumps(raised))) == "a plain sentence"


class Refusal(base.MXNetError):
    """An error of a program, whose constructor takes something else than its text."""

    def __init__(self, code: int, where: str = "here") -> None:
        super().__init__(f"refused with {code}")
        self.where = where


class Gone(base.MXNetError, OSError):
    """One that is the system's, too."""


def test_errors_of_the_system_keep_what_they_say():
    raised = Gone(2, "no file", "f")
    for again in (pickle.loads(pickle.dumps(raised, 0)), copy.copy(raised)):
        assert (type(again), str(again), again.args) == (Gone, str(raised), raised.args)


def kinds_of(error: type[Exception]) -> list[type[Exception]]:
    """A class of errors and all that derive from it."""
    return [error, *(k for below in error.__subclasses__() for k in kinds_of(below))]


@pytest.mark.parametrize("kind", kinds_of(base.GnomonError), ids=lambda kind: kind.__name__)
def test_errors_are_pickled_with_their_text(kind):
    raised = kind("what it says")
    raised.more = ["of a program"]
    for again in (pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
        assert type(again) is kind
        assert (str(again), vars(again)) == (str(raised), vars(raised))


def test_nearest_is_silent_where_nothing_is_close():
    assert base.nearest("xyzzy", ["momentum"]) == ""
    assert base.nearest("MOMENTUM", ["Momentum"]) == "; did you mean 'Momentum'?"


def test_what_is_missing_is_said_of_the_class_that_was_called():
    class Own(nn.Conv2D):  # a program's, which leaves out what the base must have
        def __init__(self):
            super().__init__(4)

    for make in (lambda: nn.Conv2D(4), Own):
        with pytest.raises(TypeError, match=r"^Conv2D\.__init__\(\) missing .* 'kernel_size'"):
            make()


def test_what_is_missing_is_said_where_a_program_has_wrapped_the_constructor(monkeypatch):
    given, seen = nn.Dense.__init__, []

    def wrapped(self, *args):
        seen.append(args)
        given(self, *args)

    monkeypatch.setattr(nn.Dense, "__init__", wrapped)
    with pytest.raises(TypeError, match=r"^Dense\.__init__\(\) missing .* 'units'"):
        nn.Dense()
    assert seen == [()]
