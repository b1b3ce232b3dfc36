"""The audit: what is tried on every operator of the registry alike.

Values and gradients are compared with MXNet's, or a reference, elsewhere; `test_cases.py` finds the
operators that have neither. Here are all requests, gradients that MXNet has not recorded, and
parameters that no operator takes.
"""

from __future__ import annotations

from fnmatch import fnmatch

import numpy as np
import pytest
from ops import test_golden as golden
from ops.test_cases import names_in_the_package, operators
from ops.test_counts import plausible

from gnomon.base import MXNetError
from gnomon.ops import find, testing
from gnomon.ops.requests import kAddTo, kNullOp, kWriteInplace, kWriteTo

EVERY = 8  # of the operators, so many are left out for each that is tried at every change
# tried where there is what they need: a seed, an image, a graph, sparse arrays, `out`
GRAPHS = ("Custom", "_cond", "_foreach", "_while_loop")  # which first look for their body
ELSEWHERE = [
    *GRAPHS,
    *"""_image_* _random_* _sample_* _set_value
    _sparse_adagrad_update _square_sum _zeros_without_dtype""".split(),
]
# the derivative of what they compute is not their gradient
STATED = {"IdentityAttachKLSparseReg"}
#: what no parameter of a kind is
WRONG = {"int": "1.5", "float": "abc", "bool": "maybe", "dtype": "nonsense", "tuple": "(a,)"}


def examples():
    """The record or case of each operator that tries it."""
    found = {}
    for record in golden.RECORDS:
        if record.get("mode") != "out":
            found.setdefault(find(record["op"]).name, record)
    return {c: found.get(c.name) or next(iter(c.cases), None) for c in operators()}


EXAMPLES = examples()
TRIED = [c for c, example in EXAMPLES.items() if example is not None]


def example_of(cls):
    """An instance of an operator, what it is given, and whether it trains."""
    record = EXAMPLES[cls]
    if not isinstance(record, dict):
        return cls.parse(record.params), testing.as_dtype(record.arrays(), "float32"), record.train
    values = golden.inputs(record)
    counted = {"num_args": len(values)} if cls.name == "add_n" else {}
    op = cls.parse(counted | record.get("attrs", {}))
    order = [*op.arguments(), *op.auxiliary()]
    named = [values[n] for n in order] if set(order) == set(values) else [*values.values()]
    return op, named, record["train"]


def agree(what, request, found, written):
    """Arrays that held 1 are what a request makes of what was written."""
    for y, value in zip(found, written, strict=True):
        told = {kNullOp: np.ones_like(value), kAddTo: 1 + value}.get(request, value)
        near = 1e-2 if y.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(y, told.astype(y.dtype), near, near, err_msg=what)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(k, id=c.name, marks=pytest.mark.long if k % EVERY else ())
        for k, c in enumerate(TRIED)
    ],
)
def test_requests(number):
    op, given, train = example_of(TRIED[number])
    written = testing.stored_outputs(op, given, kWriteTo, train)
    for request in (kNullOp, kWriteInplace, kAddTo):
        found = testing.stored_outputs(op, given, request, train)
        agree(f"{op!r}: outputs, {request.name}", request, found, written)
    heads = [np.ones_like(y) for y in written[: op.num_visible_outputs]]
    gradients = testing.stored_gradients(op, given, written, heads, kWriteTo, train)
    for request in (kNullOp, kAddTo):
        found = testing.stored_gradients(op, given, written, heads, request, train)
        agree(f"{op!r}: gradients, {request.name}", request, found, gradients)


def test_what_is_not_tried_is_named():
    left = {c.name for c, example in EXAMPLES.items() if example is None} & names_in_the_package()
    assert [n for n in left if not any(fnmatch(n, pattern) for pattern in ELSEWHERE)] == []
    names = [c.name for c in EXAMPLES]
    assert [p for p in ELSEWHERE if not any(fnmatch(n, p) for n in names)] == []


def differentiable(op, given, train):
    """The arguments whose gradients an expression says."""
    leaves = [testing.leaf(x) for x in given]
    values = op.apply(leaves, train=train, random=testing.FixedRandom())
    grads = op.backward(values[: op.num_visible_outputs], leaves, values, train=train)
    return [k for k, g in enumerate(grads) if g is not None and given[k].dtype.kind == "f"]


def without_gradients():
    """Operators of whose gradients there is neither a record nor a case."""
    recorded = {find(r["op"]) for r in golden.RECORDS if r.get("grad")}
    sloping = [c for c in TRIED if not testing.vanishes(c)]
    cased = {c for c in sloping for e in c.cases if e.differentiable != ()}
    return [c for c in TRIED if c not in recorded | cased and c.name not in STATED]


def test_gradients_that_mxnet_has_not():
    checked = set()
    for cls in without_gradients():
        op, given, train = example_of(cls)
        which = differentiable(op, given, train) if op.is_expression else []
        wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in given]
        testing.check_gradient(op, wide, which, train)
        checked.update([cls.name] if which else [])
    assert checked == set(
        "_contrib_SparseEmbedding _grad_add _slice_assign _slice_assign_scalar batch_take "
        "khatri_rao".split()
    )


def parameters_of(cls):
    """What an operator needs: of its example, or values that its parameters take."""
    needed = {name: plausible(field) for name, field in cls.fields.items() if field.required}
    example = EXAMPLES[cls]
    if example is None:
        return needed
    return needed | (example.get("attrs", {}) if isinstance(example, dict) else example.params)


@pytest.mark.parametrize(
    "cls", [c for c in operators() if c.fields and c.name not in GRAPHS], ids=lambda c: c.name
)
def test_wrong_parameters_are_refused_by_name(cls):
    needed = parameters_of(cls)
    with pytest.raises(MXNetError, match=f"{cls.name}: argument 'nonsense'"):
        cls.parse({**needed, "nonsense": "1"})
    for name, field in cls.fields.items():
        wrong = "nonsense" if field.choices else WRONG.get(field.kind.name.partition(" ")[0])
        if wrong is not None:
            with pytest.raises(MXNetError, match=f"{cls.name}: argument '{name}'"):
                cls.parse({**needed, name: wrong})
