"""`mx.registry`: tables of classes of a program's own, and gnomon's."""

import json

import pytest

import gnomon as mx


class Shape:
    def __init__(self, **settings):
        self.settings = settings


register = mx.registry.get_register_func(Shape, "shape")
alias = mx.registry.get_alias_func(Shape, "shape")
create = mx.registry.get_create_func(Shape, "shape")


@alias("disc", "Round")
class Circle(Shape):
    pass


@register
class Square(Shape):
    pass


def test_names_without_case():
    table = mx.registry.get_registry(Shape)
    assert table == {"disc": Circle, "round": Circle, "square": Square}
    assert type(create("ROUND")) is Circle
    assert mx.registry.get_registry(int) == {}


@pytest.mark.parametrize(
    "args",
    [
        (json.dumps(["square", {"side": 2}]),),
        (json.dumps({"shape": "square", "side": 2}),),
        ({"shape": "square", "side": 2},),
    ],
)
def test_written_forms(args):
    made = create(*args)
    assert (type(made), made.settings) == (Square, {"side": 2})


def test_by_nickname_and_as_itself():
    made = create(shape="disc", radius=1)
    assert made.settings == {"radius": 1}
    assert create(made) is made


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: create("squar"), "did you mean 'square'"),
        (lambda: create(1), "expected a name"),
        (create, "expected a name"),
        (lambda: create(Square(), 1), "a name to take arguments"),
        (lambda: create("[1"), "JSON"),
        (lambda: register(int), "a subclass of Shape"),
        (lambda: register("square"), "a subclass of Shape"),
    ],
)
def test_refused(call, words):
    with pytest.raises((mx.MXNetError, ValueError), match=words):
        call()


def test_another_class_of_a_name_warns():
    other = type("Square", (Shape,), {})
    with pytest.warns(UserWarning, match="shape 'Square'"):
        register(other)
    assert create("square").__class__ is other
    register(other)
    with pytest.warns(UserWarning, match="shape 'Square'"):
        register(Square)


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (mx.metric.EvalMetric, {"acc", "accuracy", "composite"}),
        (mx.init.Initializer, {"xavier", "zeros", "one"}),
        (mx.optimizer.Optimizer, {"sgd", "lamb"}),
    ],
)
def test_tables_of_gnomons_own(base, names):
    assert names <= mx.registry.get_registry(base).keys()


def test_aliases_of_metrics():
    @mx.metric.alias("shouting", "loud")
    class Loud(mx.metric.EvalMetric):
        def __init__(self):
            super().__init__("loud")

    assert type(mx.metric.create("loud")) is Loud


@pytest.mark.parametrize(
    ("kind", "base"),
    [(mx.optimizer, mx.optimizer.Optimizer), (mx.init, mx.init.Initializer)]
    + [(mx.metric, mx.metric.EvalMetric)],
)
def test_another_class_of_one_name_is_told(kind, base):
    first, second = (type(name, (base,), {}) for name in ("TakesNames", "takesnames"))
    assert kind.register(first) is first
    assert kind.register(first) is first
    with pytest.warns(UserWarning, match=r"'takesnames' was <class.*TakesNames'>, now") as told:
        kind.register(second)
    assert told[0].filename == __file__
    assert mx.registry.get_registry(base)["takesnames"] is second
