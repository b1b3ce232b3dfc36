"""Every native function does what it does as Python: results, arguments, errors and references."""

from __future__ import annotations

import ast
import ctypes
import gc
import inspect
import random
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from native import library_samples, samples
from native.samples import Leaf, Node

from gnomon import config
from gnomon.expr.source import parsed
from gnomon.native.kinds import KitError
from gnomon.native.memory import address_of
from gnomon.native.serve import methods, served
from gnomon.native.unit import Unit
from gnomon.runtime.statements.fields import readable


@pytest.fixture(autouse=True)
def natively():
    """Native code is served, whatever the environment says."""
    config.set("native", True)
    yield
    config.reset("native")


@pytest.fixture(autouse=True)
def nobody_left(only_what_is_new_is_collected):
    """All leaves are gone in the end, and none twice."""
    gc.collect()
    gc.freeze()  # a test collects hundreds of times, what is new alone
    before = Leaf.alive
    yield
    Leaf.last = None
    gc.collect()
    assert Leaf.alive == before


ALL = samples.ALL + library_samples.ALL
OF_LIBRARY = {f.__name__ for f in library_samples.ALL}


def given_of(function, chance):
    """Arguments for a function."""
    home = library_samples if function.__name__ in OF_LIBRARY else samples
    return home.given_of(function, chance)


def outcome(run, given):
    """What a call gives, or which error, and its arguments afterwards."""
    try:
        found = repr(run(*given))
    except (Exception, KeyboardInterrupt) as error:
        found = type(error).__name__
    return found, repr(given)


def compared(function, seed):
    (fast,) = served(function)
    results = []
    for run in (function, fast):
        given = given_of(function, random.Random(seed))
        results.append(outcome(run, given))
        del given
        gc.collect()
        results.append(Leaf.alive)
    assert results[:2] == results[2:], f"{function.__name__}, seed {seed}"


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_both_ways(function):
    for seed in range(120):
        compared(function, seed)


THINGS = (None, True, False, samples.ABSENT, 0, 1, Node, tuple)


def grown(function, seed):
    """By how much the references to things that stay, and all objects, grow in many calls."""

    def counts():
        return *map(sys.getrefcount, THINGS), len(gc.get_objects())

    def run(times):
        for _ in range(times):
            outcome(function, given_of(function, random.Random(seed)))

    run(1)
    before = counts()
    run(60)
    return max(abs(a - b) for a, b in zip(before, counts(), strict=True))


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_references_stay_as_they_are(function):
    (fast,) = served(function)
    gc.collect()
    gc.disable()  # it would take what others left
    try:
        assert [seed for seed in range(25) if grown(fast, seed) > 30] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_finalisers_may_do_anything(function):
    (fast,) = served(function)
    for seed in range(80):
        given = given_of(function, random.Random(seed))
        things = [*given, *(getattr(x, "left", None) for x in given if isinstance(x, Node))]

        def spoil(things=things):
            Leaf.last = None
            for x in things:
                if isinstance(x, Node):
                    for name in ("left", "right", "leaf", "big", "items", "table"):
                        setattr(
                            x, name, None if name in ("left", "right", "leaf") else type(name)()
                        )
                elif isinstance(x, list):
                    x.clear()
            gc.collect()

        Leaf.last = spoil
        outcome(fast, given)
        Leaf.last = None
        things.clear()


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_the_collector_may_run_anywhere(function):
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for seed in range(15):
            compared(function, seed)
    finally:
        gc.set_threshold(*before)


def interrupted(function, given, after):
    """Run a function with an interrupt before one of its instructions; whether it came."""
    left = after

    def trace(frame, event, argument):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code is function.__code__:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        function(*given)
    except KeyboardInterrupt:
        return True
    except Exception:
        return False
    finally:
        sys.settrace(None)
    return False


def leaves_nothing(function, after):
    """Whether an interrupt came there, after which all leaves are gone."""
    alive = Leaf.alive
    given = given_of(function, random.Random(7))
    came = interrupted(function, given, after)
    del given
    gc.collect()
    assert Leaf.alive == alive
    return came


def test_interrupts_between_any_two_instructions_leave_nothing_behind():
    before = sys.gettrace()
    try:
        for function in (samples.made_new, samples.lists, samples.keys, samples.passes):
            leaves_nothing(function, 0)  # Python 3.12 tells of instructions from the next call on
            came = [after for after in range(1, 400) if leaves_nothing(function, after)]
            assert came == [*range(1, len(came) + 1)] and 10 < len(came) < 399
    finally:
        sys.settrace(before)


def test_threads_share_one_code():
    wrong, done = [], []

    def work(seed):
        for k in range(60):
            function = (samples.arithmetic, samples.logic, samples.keys)[k % 3]
            (fast,) = served(function)
            given = given_of(function, random.Random(seed + k))
            if outcome(fast, given) != outcome(function, given):
                wrong.append((function, seed))
        done.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(done) == 3


def test_native_addresses():
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    double = kind(lambda n: 2 * n)
    address = ctypes.cast(double, ctypes.c_void_p).value
    (fast,) = served(samples.called)
    assert samples.called(address, 21) == fast(address, 21) == 42


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((), "takes 3 arguments"),
        ((1, 2), "takes 3 arguments"),
        ((1, 2, 3, 4), "takes 3 arguments"),
        (("a", 2, 1.0), "integer"),
        ((1, 2.5, 1.0), "integer"),
        ((1, 2, "x"), ""),
        ((1, None, 1.0), ""),
    ],
)
def test_arguments_are_looked_at(given, error):
    (fast,) = served(samples.arithmetic)
    with pytest.raises(TypeError) as found:
        fast(*given)
    assert not readable() or error in str(found.value)


def test_how_many_arguments_there_must_be_at_least():
    (fast,) = served(samples.given)
    with pytest.raises(TypeError) as found:
        fast()
    said = "given takes at least 1 argument, 0 were given"
    assert not readable() or str(found.value) == said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), {}),
        ((1,), {}),
        ((1, 2, 3, True), {}),
        ((1, 2, 3, 4, 5), {}),
        ((1,) * 200_000, {}),
        ((), {"x": 1, "flag": True}),
        ((), {"".join(["na", "me"]): 5, "x": 2}),
        ((1,), {"x": 1}),
        ((1, 2), {"n": 1}),
        ((1,), {"other": 1}),
        ((1,), {"n": "three"}),
        ((1,), {"flag": True, "name": []}),
    ],
)
def test_arguments_by_name_and_those_left_out(given, words):
    def outcome_of(run):
        try:
            return run(*given, **words)
        except TypeError as error:
            return str(error) if "n" not in words else "TypeError"

    (fast,) = served(library_samples.left_out)
    assert outcome_of(fast) == outcome_of(library_samples.left_out)
    (made,) = methods((Node, library_samples.left_out))
    Node.left_out = made
    try:
        x = Node()
        assert outcome_of(x.left_out) == outcome_of(partial(library_samples.left_out, x))
    finally:
        del Node.left_out
    if readable():
        assert fast.__doc__ is None
        assert str(inspect.signature(made)) == "(self, /, n=3, name=None, flag=False)"


def test_classes_of_arguments_are_looked_at():
    if readable():
        (fast,) = served(samples.slots)
        with pytest.raises(TypeError, match="argument 'x': Node is expected"):
            fast(3, Leaf(1))
        with pytest.raises(TypeError, match="argument 'leaf': Leaf is expected"):
            fast(samples.node(random.Random(1)), 3)
        with pytest.raises(OverflowError):
            served(samples.called)[0](2**64, 1)


def test_slots_that_are_not_set_are_named():
    (fast,) = served(samples.passes)
    for run in (samples.passes, fast):
        with pytest.raises(AttributeError, match="items"):
            run(Node())


def test_methods():
    class Other(Node):
        __slots__ = ()

    (made,) = methods((Node, samples.passes))
    Node.passes = made
    try:
        x = samples.node(random.Random(3))
        x.items, x.leaf = [Leaf(1), Leaf(2)], 5
        found = x.passes()
        assert found[1:] == (5, 1)
        other = Other()
        with pytest.raises(AttributeError, match="items"):
            other.passes()
        with pytest.raises(TypeError):
            x.passes(1)
        with pytest.raises(TypeError):
            Node.passes(3)
    finally:
        del Node.passes


# --- what is refused ------------------------------------------------------------------------

HEAD = """from __future__ import annotations
from typing import Any
from gnomon.ground.collector import resting
from gnomon.native.words import *
class Point:
    __slots__ = ("x", "y")
    x: int
"""

REFUSED = {
    "def f(x: int) -> object:\n    return x / 2": (2, "not supported"),
    "def f(x: int) -> object:\n    y = 1\n    return [k for k in y]": (3, "not supported"),
    "def f(x: object) -> object:\n    try:\n        return x\n    finally:\n        pass": (
        2,
        "try",
    ),
    "def f(x: object) -> object:\n    with x:\n        return x": (2, "`with` is for"),
    "def f(n: int) -> int:\n    while n:\n        with resting():\n            break\n": (
        3,
        "no round of a loop ends",
    ),
    "def f(x: object) -> object:\n    return x.y": (2, "object has no slot 'y'"),
    "def f(x: Point) -> object:\n    return x.y": (2, "Point.y has no annotation"),
    "def f(x: Point) -> object:\n    return x.z": (2, "Point has no slot 'z'"),
    "def f(x: object) -> object:\n    if x:\n        y = 1\n    return y": (
        4,
        "'y' may not be set",
    ),
    "def f(x: int) -> object:\n    while x:\n        y = x\n        x = 0\n    return y": (
        5,
        "may not",
    ),
    "def f(x: int) -> object:\n    x = []\n    return x": (2, "a number is needed, not list"),
    "def f(x: int) -> object:\n    y = 1\n    y = 2.5\n    return y": (3, "a plain int"),
    "def f(*x: int) -> object:\n    return x": (2, "an object is needed"),
    "def f(**x: int) -> object:\n    return x": (1, "parameters"),
    "def f(x: object, *y: object) -> object:\n    return f(x, x, *y)": (2, "behind one argument"),
    "def f(x: list[int]) -> object:\n    return any([k for k in x])": (2, "any() ask"),
    "def f(x: list[int], k: int) -> object:\n    return all(k for k in x)": (2, "outside as well"),
    "def f(x: object, y: list[int]) -> object:\n    if type(x) is Point:\n        for x in y:\n"
    "            pass\n        return x.y\n    return x": (5, "object has no slot 'y'"),
    "def f(x: object) -> object:\n    if type(x) is Point:\n        while x:\n"
    "            x = object()\n        return x.y\n    return x": (5, "object has no slot 'y'"),
    "def f(x: object) -> object:\n    raise x": (2, "an exception is expected"),
    "def f(x: object) -> object:\n    try:\n        f(x)\n    except:\n        pass": (
        2,
        "one class",
    ),
    "def f(x: object) -> object:\n    try:\n        len(x)\n    except KeyError as e:\n        3\n"
    "    return e": (6, "may not be set"),
    "def f(x: object) -> object:\n    return tuple(x)": (2, "tuple() is for"),
    "def f(x: object, y: object = 2.5) -> object:\n    return y": (0, "2.5 is not supported"),
    "def f(x: object = None, *y: object) -> object:\n    return x": (0, "do not go together"),
    "def f(x: object, y: object) -> object:\n    return x(y, *y)": (2, "`*` is for"),
    "def f(x: int) -> object:\n    return nobody(x)": (2, "no 'nobody' is known"),
    "def f(x: int) -> object:\n    return f(x)": (2, "calls itself"),
    "def f(x: int) -> object:\n    return 1 < x < 3": (2, "in a row"),
    "def f(x: int) -> object:\n    return x << x": (2, "shifts"),
    "def f(x: int) -> object:\n    return x is None": (2, "`is` compares objects"),
    "def f(x: object) -> object:\n    return x == 3": (2, "a number is needed, not object"),
    "def f(x: object) -> Point:\n    return x": (2, "Point is expected, not object; say `cast`"),
    "def f(x: object) -> object:\n    return int(x=3)": (2, "arguments by name"),
    "def f(x: object) -> object:\n    for k in x:\n        pass": (2, "loops over object"),
    "def f(n: int) -> object:\n    for k in range(n):\n        scratch(3)": (3, "no loop"),
    "def f(x: object) -> object:\n    a, b = x\n    return a": (2, "cannot be set"),
    "def f(x: tuple[int, ...]) -> object:\n    x[0] = 3": (2, "cannot be set"),
    "def f(n: int) -> object:\n    p = Parts(n)\n    t = tuple(p)\n    return p": (
        4,
        "may not be set",
    ),
    "def f(x: Words) -> object:\n    return 1": (0, "Words"),
    "def f(x: int, y) -> object:\n    return x": (
        1,
        "f(): parameter 'y' has no annotation, as `y: object`",
    ),
    "def f(n: int, x: object) -> object:\n    y = ()\n    for k in range(n):\n        y = x\n"
    "    return y": (4, "'y' is tuple before a loop that sets it: annotate it"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_supported_is_said_with_its_line(text, tmp_path):
    line, said = REFUSED[text]
    path = tmp_path / "refused.py"
    source = HEAD + "@native\n" + text + "\n"
    path.write_text(source)
    space = {"__name__": __name__}
    exec(compile(source, str(path), "exec", dont_inherit=True), space)
    with pytest.raises(KitError) as found:
        Unit((space["f"],))
    assert said in str(found.value)
    if line:
        assert str(found.value).startswith(f"{path}:{HEAD.count(chr(10)) + 1 + line}: ")


def test_sources_are_parsed_while_others_parse():
    """A collection amidst the making of a tree, whose finalisers parse: CPython 3.11 mixes both."""
    text, told = "x = [1, 2, (3, f(4))]\n" * 2000, list[str]()

    def parse_too(phase, info):
        if phase == "start" and len(told) < 3:
            told.append(phase)
            ast.parse("y")

    before, on = gc.get_threshold(), gc.isenabled()
    gc.callbacks.append(parse_too)
    gc.enable()
    gc.set_threshold(100)
    try:
        assert len(parsed(text).body) == 2000
    finally:
        gc.callbacks.remove(parse_too)
        gc.set_threshold(*before)
        if not on:
            gc.disable()
    amidst = sys.version_info < (3, 12)  # from then on collections wait for the end of a call
    assert len(told) == 3 if amidst else told


def test_parameters_without_annotations_are_refused_where_an_address_is_asked_for():
    def bare(x):
        return x

    with pytest.raises(KitError, match=r"test_kit.py:\d+: bare\(\): parameter 'x' has no annot"):
        address_of(bare)


def test_a_method_has_an_object():
    if readable():
        with pytest.raises(KitError, match="counted_rest: the first parameter of a method"):
            methods((Node, library_samples.counted_rest))


def test_a_function_within_another_is_refused():
    def inner(x: int) -> int:
        return x

    with pytest.raises(KitError, match="no function of the module"):
        Unit((inner,))


# --- where native code is not served --------------------------------------------------------


def written(folder: Path, text: str, name: str):
    """A native function in a file of its own."""
    path = folder / f"{name}.py"
    path.write_text(HEAD + "@native\n" + text + "\n")
    space = {"__name__": __name__}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), space)
    return path, space["f"]


def test_without_its_source_a_function_is_run_by_python(tmp_path):
    path, function = written(tmp_path, "def f(x: int) -> int:\n    return x + 1", "gone")
    path.unlink()
    assert served(function) == (function,)
    path, function = written(tmp_path, "def f(x: int) -> int:\n    return x + 2", "other")
    path.write_text(path.read_text().replace("+ 2", "- 2"))
    assert served(function) == (function,)


def test_a_setting_has_functions_run_by_python(tmp_path):
    _, function = written(tmp_path, "def f(x: int) -> int:\n    return x + 3", "setting")
    with config.using(native=False):
        assert not readable()
        assert served(function) == (function,)
