"""The operator record: what a declaration gives without saying it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gnomon
from gnomon import dtype
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, UnknownNameError
from gnomon.expr import fn
from gnomon.expr.node import Buffer
from gnomon.expr.walk import postorder
from gnomon.graph.gradient import flow_of
from gnomon.ops import Op, find, op, param, registry
from gnomon.ops.derive import Needs
from gnomon.ops.testing import backward

F = dtype.float32


@op("_test_scaled", inputs=("data", "shift", "seen"), aux=("seen",), aliases=("_test_alias",))
class Scaled(Op):
    """`data` times `factor` plus `shift`; `seen` counts the calls."""

    factor: float = param(2.0, low=0)
    plain: bool = param(False)

    def forward(self, data, shift, seen, *, train=False):
        return data * self.factor + shift if train else fn.identity(data)

    def updates(self, inputs, aux, outputs, train=True):
        return {0: aux[0] + 1} if train else {}


@op("_test_product", inputs=("lhs", "rhs"))
class Product(Op):
    """The product."""

    def forward(self, lhs, rhs):
        return lhs * rhs


@op("_test_tanh")
class Tanh(Op):
    """The tangent."""

    def forward(self, data):
        return fn.tanh(data)


def test_what_fails_in_forward_is_told_with_the_operator():
    whole = Buffer((3,), dtype.int32)
    with pytest.raises(
        DTypeError, match=r"_test_scaled.forward: mul: argument 'operand 1'"
    ) as told:
        Scaled(factor=1.5).apply((whole, whole, whole), train=True)
    assert str(told.value).startswith("_test_scaled: argument 'data': expected floating-point num")
    with pytest.raises(ShapeError, match=r"_test_product.forward: mul"):
        Product().apply((Buffer((3,)), Buffer((4,))))


def test_an_instance_has_its_parameters_and_prints_those_given():
    scaled = Scaled(factor="3")
    assert (scaled.factor, scaled.plain) == (3.0, False)
    assert scaled.attrs() == {"factor": "3"}
    assert repr(scaled) == "_test_scaled(factor=3)"
    assert Scaled.parse({"factor": 3, "plain": "True"}).attrs() == {"factor": "3", "plain": "True"}


def test_equal_operators_are_equal_and_parsed_once():
    assert Scaled(factor=3) == Scaled(factor="3.0") != Scaled(factor=4)
    assert hash(Scaled(factor=3)) == hash(Scaled(factor="3"))
    assert Scaled.parse({"factor": 3}) is Scaled.parse({"factor": 3})
    assert Scaled.parse({"factor": 3.0}).attrs() == {"factor": "3.0"}
    assert Scaled() != Product()


def test_an_operator_is_frozen_and_names_what_it_lacks():
    with pytest.raises(GnomonError, match="frozen, 'factor'"):
        Scaled().factor = 3
    with pytest.raises(AttributeError, match=r"_test_scaled: no parameter or method 'facto'"):
        _ = Scaled().facto
    with pytest.raises(ParamError, match=r"_test_scaled: argument 'factr'.*did you mean 'factor'"):
        Scaled.parse({"factr": 1})
    with pytest.raises(ParamError, match="expected float >= 0, got -1"):
        Scaled(factor=-1)


def test_names_of_inputs_outputs_and_states():
    scaled = Scaled()
    assert scaled.arguments() == ("data", "shift")
    assert scaled.auxiliary() == ("seen",)
    assert scaled.inputs() == ("data", "shift", "seen")
    assert (scaled.outputs(), scaled.num_visible_outputs) == (("output",), 1)
    assert scaled.is_expression


def test_a_declaration_is_checked():
    with pytest.raises(TypeError, match=r"op _test_plain.*a subclass of Op, got <class"):
        op("_test_plain")(type("Plain", (), {}))
    for what in ("inputs", "outputs", "aux"):
        with pytest.raises(TypeError, match=rf"op _test_text.*{what}.*names, got 'data'"):
            op("_test_text", **{what: "data"})


@pytest.mark.parametrize("wrong", ["one", "bare"])
def test_a_gradient_of_another_form_is_refused(wrong):
    class Wrong(Op):
        def forward(self, left, right):
            return left * right

        def backward(self, out_grads, inputs, outputs):
            return (out_grads[0],) if wrong == "one" else out_grads[0]

    name = f"_test_wrong_{wrong}"
    record = op(name, inputs=("left", "right"))(Wrong).parse({})
    with pytest.raises(ShapeError, match=rf"{name}\.backward.*a tuple of 2 gradients, got"):
        flow_of(record, ((2,), (2,)), (F, F), (True, True), True)


def test_a_field_without_param_is_refused():
    class Wrong(Op):
        k: int = 3

        def forward(self, data):
            return data * self.k

    with pytest.raises(ParamError, match=r"Wrong: argument 'k': expected param\(3\), or no annot"):
        op("_test_wrong", inputs=("data",))(Wrong)


def test_the_registry_finds_by_name_and_alias():
    assert find("_test_scaled") is find("_test_alias") is Scaled
    with pytest.raises(UnknownNameError, match="operator '_test_scale' is not registered; did you"):
        find("_test_scale")
    with pytest.raises(ParamError, match="'_test_alias' is registered already"):
        op("_test_other", aliases=("_test_alias",))(type("Other", (Tanh,), {}))


def test_context_reaches_those_who_ask_and_no_others():
    x, b, n = Buffer((3,)), Buffer((3,)), Buffer((3,))
    assert Scaled().forward(x, b, n, train=True, random=None).children
    assert Scaled().apply([x, b, n], train=False, unheard="of")[0].children == (x,)
    assert Product().apply([x, b], train=True)[0].shape == (3,)


def test_shapes_are_inferred_in_both_directions():
    assert Product().infer_shape([(2, 3), None]) == ([(2, 3)] * 2, [(2, 3)], [])
    assert Product().infer_shape([None, None], [(2, 3)]) == ([(2, 3)] * 2, [(2, 3)], [])
    assert Product().infer_shape([(2, 0), (0, 3)]) == ([(2, 3)] * 2, [(2, 3)], [])
    assert Product().infer_shape([None, None]) == ([None, None], [None], [])
    assert Product().infer_shape([(), (0, 4)]) == ([(0, 4)] * 2, [(0, 4)], [])
    assert Product().infer_shape([(0, 4)] * 2, zero_unknown=False)[1] == [(0, 4)]
    assert Scaled().infer_shape([(2,), None])[2] == [(2,)]


def test_contradictions_name_argument_and_both():
    with pytest.raises(ShapeError) as error:
        Product().infer_shape([(2, 3), (2, 4)])
    assert str(error.value) == "_test_product: argument 'rhs': expected shape (2, 3), got (2, 4)"
    with pytest.raises(ShapeError, match=r"'rhs': expected shape \(2, \?\), got \(2,\)"):
        Product().infer_shape([(2, 0), (2,)])
    with pytest.raises(DTypeError, match="'rhs': expected dtype float32, got int32"):
        Product().infer_type([F, dtype.int32])
    with pytest.raises(ParamError, match="expected 2 of them: lhs, rhs, got 1"):
        Product().infer_shape([(2, 3)])


def test_dtypes_are_inferred_in_both_directions():
    assert Product().infer_type([F, None]) == ([F, F], [F], [])
    assert Product().infer_type([None, None], [F]) == ([F, F], [F], [])
    assert Product().infer_type([None, None]) == ([None, None], [None], [])


def test_the_gradient_reads_what_it_needs():
    assert Product().backward_needs([(3,)] * 2, [F] * 2) == Needs((0,), (0, 1), ())
    assert Tanh().backward_needs([(3,)], [F]) == Needs((0,), (), (0,))
    assert Scaled().backward_needs([(3,)] * 2, [F] * 2) == Needs((0,), (), ())


def test_one_buffer_may_be_two_arguments():
    x = np.array([1.0, 2.0, 3.0])
    left, right = backward(Product(), [x, x], [np.ones(3)])
    np.testing.assert_array_equal(left, x)
    np.testing.assert_array_equal(right, x)


def test_outputs_may_overwrite_what_is_read_at_the_same_place():
    assert Product().inplace([(3,)] * 2, [F] * 2) == ((0, 0), (1, 0))
    assert Tanh().inplace([(3,)], [F]) == ((0, 0),)
    half, states = dtype.float16, find("mp_lamb_update_phase1")(t=1, wd=0.0)
    assert states.inplace([(3,)] * 2, [half] * 2) == ()  # which are written after the output


def test_a_gradient_of_stand_ins_is_derived_over_themselves():
    """Leaves without memory are looked at as they are; others, and one given twice, as well."""
    made, g, x, y = Tanh(), *(Buffer((3, 7)) for _ in range(3))
    (first,), (second,) = (made.backward((g,), (x,), (y,)) for _ in range(2))
    assert first is second
    others = Buffer((3, 7), address=64), Buffer((3, 7), address=128), Buffer((3, 7), address=192)
    (found,) = made.backward(others[:1], others[1:2], others[2:])
    leaves = {n for n in postorder([found]) if isinstance(n, Buffer)}
    assert leaves == {others[0], others[2]}
    product, same, head = Product(), Buffer((5, 11)), Buffer((5, 11))
    found = product.backward((head,), (same, same), (None,))
    assert [{n for n in postorder([e]) if isinstance(n, Buffer)} for e in found] == [
        {head, same},
        {head, same},
    ]


def test_forward_asks_for_inputs_alone():
    class Wanting(Op):
        def forward(self, data, more):
            return data * more

    with pytest.raises(TypeError, match=r"op _test_wanting: argument 'forward'.* data alone.*more"):
        op("_test_wanting")(Wanting)


def test_what_is_missing_says_so():
    with pytest.raises(TypeError, match=r"op _test_empty: .*with forward .*, or with run"):
        op("_test_empty")(type("Empty", (Op,), {}))
    on_data = op("_test_on_data")(type("OnData", (Op,), {"run": lambda self, *given: None}))
    assert not on_data.is_expression
    with pytest.raises(GnomonError, match="_test_on_data: works on data"):
        on_data().forward(None)
    with pytest.raises(GnomonError, match="_test_tanh: is an expression"):
        Tanh().run(None, [], [], [], [])


RULES = {
    "shapes": lambda op: op.infer_shape([(2,), (2,)]),
    "types": lambda op: op.infer_type([F, F]),
    "forward": lambda op: op.apply([Buffer((2,)), Buffer((2,))]),
}


@pytest.mark.parametrize("rule", RULES)
def test_exceptions_out_of_a_rule_tell_the_operator(rule):
    def failing(self, *args):
        raise ZeroDivisionError("mine")

    broken = type("Broken", (Product,), {rule: failing, "name": "_test_broken"})()
    with pytest.raises(ZeroDivisionError) as told:
        RULES[rule](broken)
    assert told.value.__notes__ == [f"in _test_broken.{rule}"]


@pytest.mark.parametrize("package", ["ndarray", "symbol"])
def test_no_file_hides_an_operator(package):
    """Whoever imports `gnomon.ndarray.repeat` makes it the package's attribute."""
    there = {f.stem for f in (Path(gnomon.__file__).parent / package).iterdir()}
    assert there.isdisjoint(registry.names())
