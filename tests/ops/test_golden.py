"""Every operator gives what the real library gave: forward, backward, write and add.

The records are made by `tests/golden/make.py`; this runner knows nothing of any operator and uses
the public names alone: a symbol, bound and run, and the function of the same name on arrays.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from golden.inputs import draw, initial

import gnomon as mx

GOLDEN = Path(__file__).parent.parent / "golden"
# MXNet holds many parameters and constants in single precision, whatever the dtype of the data
TOLERANCE = {"float16": (2e-2, 2e-3), "float32": (1e-4, 2e-5), "float64": (1e-6, 1e-7)}
WEIGHTS = ("weight", "weight_0", "weight_1")  # which updates write
# what they do depends on the mode, which mx.nd has from outside
TRAINED = ("BatchNorm", "_contrib_SyncBatchNorm", "Dropout")

RECORDS, RECORDED = [], []
for path in sorted(GOLDEN.glob("operators*.json")):
    facts = json.loads(path.read_text())
    found = [{} for _ in facts]
    with np.load(path.with_suffix(".npz")) as arrays:
        for key in arrays.files:
            number, _, what = key.partition("/")
            found[int(number)][what] = arrays[key]
    RECORDS += facts
    RECORDED += found


def records(wanted):
    """A test for each record that `wanted` takes."""
    chosen = [(number, record["id"]) for number, record in enumerate(RECORDS) if wanted(record)]
    return pytest.mark.parametrize("number", [n for n, _ in chosen], ids=[i for _, i in chosen])


def early(record, count):
    """Is it among the first records of its operator? What all share need not be tried at each."""
    return any(record is r for r in [r for r in RECORDS if r["op"] == record["op"]][:count])


def in_place(record):
    """Does the operator change its inputs?"""
    return record.get("mode") in ("update", "out")


def modal(record):
    """Would the function on arrays need to be told that it is training?"""
    return record["train"] and record["op"] in TRAINED


def inputs(record):
    """The arrays of a record by name."""
    types = record.get("dtypes", {})
    return {
        name: draw(f"{record['id']}:{name}", spec, types.get(name, record["dtype"]))
        for name, spec in record.get("inputs", {}).items()
    }


def settings(record):
    """The parameters as a user writes them."""
    attrs = record.get("attrs", {})
    return {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}


def function(namespace, name):
    return getattr(namespace, name, None) or getattr(namespace._internal, name)


def array(values):
    return mx.nd.array(values, dtype=values.dtype)


def check(what, ours, theirs, coarse=None):
    """Shape, dtype and values agree, to the tolerance of the dtype, or of `coarse`."""
    assert ours.shape == theirs.shape, what
    assert ours.dtype == theirs.dtype, what
    if theirs.dtype.name not in TOLERANCE:
        assert np.array_equal(ours, theirs), what
        return
    relative, absolute = TOLERANCE[coarse or theirs.dtype.name]
    np.testing.assert_allclose(ours, theirs, relative, absolute, err_msg=what)


def run(record, values, before, request):
    """The executor after one forward and backward, its gradients starting from `before`."""
    symbol = function(mx.sym, record["op"])(*map(mx.sym.Variable, values), **settings(record))
    aux = symbol.list_auxiliary_states()
    bound = symbol.bind(
        mx.cpu(),
        {k: array(v) for k, v in values.items() if k not in aux},
        args_grad={k: array(v) for k, v in before.items()},
        grad_req=dict.fromkeys(before, request) or "null",
        aux_states={k: array(values[k]) for k in aux},
    )
    outputs = bound.forward(is_train=record["train"])
    if before:
        specs = record.get("heads") or [["n", list(o.shape)] for o in outputs]
        names = [f"{record['id']}:head{k}" for k in range(len(outputs))]
        heads = [draw(n, s, o.dtype) for n, s, o in zip(names, specs, outputs, strict=True)]
        bound.backward([array(h) for h in heads])
    return bound


def compare(bound, recorded, before, request, coarse):
    """Outputs, gradients and auxiliary states against the record."""
    for k, output in enumerate(bound.outputs):
        check(f"output {k}", output.asnumpy(), recorded[f"out{k}"], coarse)
    for name, start in before.items():
        expected = recorded[f"grad:{name}"]
        if request == "add":
            expected = (start + expected).astype(start.dtype)
        found = bound.grad_dict[name].asnumpy()
        check(f"gradient of {name}, {request}", found, expected, coarse)
    for name, state in bound.aux_dict.items():
        check(f"state {name}", state.asnumpy(), recorded[f"aux:{name}"], coarse)


@records(lambda record: not in_place(record))
def test_symbol(number):
    record, recorded = RECORDS[number], RECORDED[number]
    values = inputs(record)
    names = record.get("grad", [])
    coarse = "float16" if record["dtype"] == "float16" else None  # float32 statistics of them, too
    requests = ("write", "add") if early(record, 2) else ("write",)
    for request in requests if names else ("null",):
        before = {k: initial(values[k].shape, values[k].dtype) for k in names}
        compare(run(record, values, before, request), recorded, before, request, coarse)


@records(lambda record: in_place(record) or (early(record, 2) and not modal(record)))
def test_imperative(number):
    record, recorded = RECORDS[number], RECORDED[number]
    arrays = {k: array(v) for k, v in inputs(record).items()}
    operator = function(mx.nd, record["op"])
    if in_place(record):
        out = [] if record.get("heads") == [] else [a for k, a in arrays.items() if k in WEIGHTS]
        given = [] if record["mode"] == "out" else arrays.values()
        made = operator(*given, out=out or None, **settings(record))
        if not out:
            check("output", made.asnumpy(), recorded["out0"])
        for name in [k for k in arrays if not k.startswith("grad")]:
            check(name, arrays[name].asnumpy(), recorded[f"aux:{name}"])
        return
    outputs = operator(*arrays.values(), **settings(record))
    for k, output in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        check(f"output {k}", output.asnumpy(), recorded[f"out{k}"])
