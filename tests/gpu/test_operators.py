"""Every operator on a GPU gives what the real library gave: the records of the processor's test."""

from __future__ import annotations

import pytest
from golden.inputs import draw, initial

import gnomon as mx
from tests.ops.test_golden import (
    RECORDED,
    RECORDS,
    WEIGHTS,
    check,
    early,
    function,
    in_place,
    inputs,
    settings,
)

GPU = mx.gpu(0)
#: one operator in so many, each by its first record; all records with `-m long`
STRIDE = 5


def there(values):
    return mx.nd.array(values, ctx=GPU, dtype=values.dtype)


def changed(record, recorded):
    """What an operator that writes to its inputs leaves there."""
    arrays = {k: there(v) for k, v in inputs(record).items()}
    out = [] if record.get("heads") == [] else [a for k, a in arrays.items() if k in WEIGHTS]
    given = [] if record["mode"] == "out" else arrays.values()
    made = function(mx.nd, record["op"])(*given, out=out or None, **settings(record))
    if not out:
        check("output", made.asnumpy(), recorded["out0"])
    for name in [k for k in arrays if not k.startswith("grad")]:
        assert arrays[name].context == GPU
        check(name, arrays[name].asnumpy(), recorded[f"aux:{name}"])


def followed(record, recorded):
    """Outputs, gradients and states of an operator on the tape."""
    coarse = "float16" if record["dtype"] == "float16" else None
    arrays = {k: there(v) for k, v in inputs(record).items()}
    request = "add" if early(record, 2) else "write"
    for name in record.get("grad", []):
        arrays[name].attach_grad(request)
        arrays[name].grad[:] = initial(arrays[name].shape, arrays[name].dtype)
    with mx.autograd.record(train_mode=record["train"]):
        made = function(mx.nd, record["op"])(
            *arrays.values(), **settings(record), **({} if arrays else {"ctx": GPU})
        )
    outputs = made if isinstance(made, list) else [made]
    for k, output in enumerate(outputs):
        assert output.context == GPU
        check(f"output {k}", output.asnumpy(), recorded[f"out{k}"], coarse)
    if record.get("grad"):
        specs = record.get("heads") or [["n", list(o.shape)] for o in outputs]
        names = [f"{record['id']}:head{k}" for k in range(len(outputs))]
        named = zip(names, specs, outputs, strict=True)
        heads = [there(draw(name, spec, o.dtype)) for name, spec, o in named]
        mx.autograd.backward(outputs, heads)
    for name in record.get("grad", []):
        expected = recorded[f"grad:{name}"]
        if request == "add":
            start = initial(arrays[name].shape, arrays[name].dtype)
            expected = (start + expected).astype(start.dtype)
        check(f"gradient of {name}", arrays[name].grad.asnumpy(), expected, coarse)
    for what in [k for k in recorded if k.startswith("aux:")]:
        check(what, arrays[what[4:]].asnumpy(), recorded[what], coarse)


def agrees(number):
    record, recorded = RECORDS[number], RECORDED[number]
    (changed if in_place(record) else followed)(record, recorded)


FIRST = [next(n for n, r in enumerate(RECORDS) if r["op"] == op)
         for op in dict.fromkeys(r["op"] for r in RECORDS)]  # fmt: skip
FEW = FIRST[::STRIDE]


@pytest.mark.parametrize("number", FEW, ids=[RECORDS[n]["id"] for n in FEW])
def test_an_operator(number):
    agrees(number)


REST = sorted(set(range(len(RECORDS))) - set(FEW))


@pytest.mark.long
@pytest.mark.parametrize("number", REST, ids=[RECORDS[n]["id"] for n in REST])
def test_every_record(number):
    agrees(number)
