"""operators.json and operators.npz: what every operator computes, forward and backward.

A later file of records `make_cases_x.py` has files of its own, operators-x.json and .npz, which
`python tests/golden/make.py operators-x` writes.
"""

import importlib
import json
import sys

import mxnet as mx
import numpy as np
from inputs import draw, initial
from make_case import CASES

WEIGHTS = ("weight", "weight_0", "weight_1")
FIRST = ("loss", "math", "nn", "shape")  # in the files without a name of their own


def find(namespace, name):
    """A function of mx.sym or mx.nd, wherever MXNet puts it."""
    places = [(namespace, name), (namespace._internal, name)]
    spaces = ("contrib", "linalg")
    places += [(getattr(namespace, space), name.removeprefix(f"_{space}_")) for space in spaces]
    return next(getattr(place, short) for place, short in places if hasattr(place, short))


def settings(record):
    """The parameters as Python values."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record["attrs"].items()}


def inputs(record):
    """The arrays a record names, drawn."""
    of = record["dtypes"]
    return {
        name: draw(f"{record['id']}:{name}", spec, of.get(name, record["dtype"]))
        for name, spec in record["inputs"].items()
    }


def array(values):
    return mx.nd.array(values, dtype=values.dtype)


def run(record, values, requests, before):
    """Outputs, gradients, auxiliary states and heads of one forward and backward."""
    symbol = find(mx.sym, record["op"])(*map(mx.sym.Variable, values), **settings(record))
    aux = symbol.list_auxiliary_states()
    args = {k: array(v) for k, v in values.items() if k not in aux}
    states = {k: array(values[k]) for k in aux}
    gradients = {k: array(before[k]) for k in requests}
    bound = symbol.bind(mx.cpu(), args, gradients, requests or "null", states)
    outputs = bound.forward(is_train=record["train"])
    heads = []
    if requests:
        specs = record["heads"] or [["n", list(o.shape)] for o in outputs]
        heads = [
            draw(f"{record['id']}:head{k}", s, o.dtype)
            for k, (s, o) in enumerate(zip(specs, outputs, strict=True))
        ]
        bound.backward([array(h) for h in heads])
    return (
        [o.asnumpy() for o in outputs],
        {k: v.asnumpy() for k, v in gradients.items()},
        {k: v.asnumpy() for k, v in states.items()},
        heads,
    )


def wanted(record, values):
    """The inputs that have a gradient."""
    if isinstance(record["grad"], list):
        return record["grad"]
    states = ("moving_mean", "moving_var")
    return [k for k in values if k not in states] if record["grad"] else []


def record_symbol(record, values):
    """A record through a bound symbol; also whether MXNet adds as it should."""
    names = wanted(record, values)
    zeros = {k: np.zeros_like(values[k]) for k in names}
    outputs, gradients, states, heads = run(record, values, dict.fromkeys(names, "write"), zeros)
    if record["ours"]:
        gradients = record["ours"](values, heads, outputs, gradients)
    if names and record["op"] not in ("make_loss", "MakeLoss"):
        before = {k: initial(values[k].shape, values[k].dtype) for k in names}
        try:
            _, added, _, _ = run(record, values, dict.fromkeys(names, "add"), before)
        except mx.MXNetError:
            added = {}
        for k in added:
            right = before[k].astype("f8") + gradients[k]
            tolerance = 2e-2 if values[k].dtype == np.float16 else 1e-4
            if not np.allclose(added[k], right, rtol=tolerance, atol=1e-2, equal_nan=True):
                print(f"{record['id']}: MXNet's add differs for {k}", file=sys.stderr)
    named = {f"out{k}": o for k, o in enumerate(outputs)}
    named.update({f"grad:{k}": g for k, g in gradients.items()})
    named.update({f"aux:{k}": s for k, s in states.items()})
    return named


def written(record, arrays):
    """The weights, where an update writes; its output is new where `heads` is empty."""
    return [] if record["heads"] == [] else [a for k, a in arrays.items() if k in WEIGHTS]


def record_update(record, values):
    """A record whose inputs change in place."""
    arrays = {k: array(v) for k, v in values.items()}
    out = written(record, arrays)
    given = [] if record["mode"] == "out" else arrays.values()
    found = find(mx.nd, record["op"])(*given, out=out or None, **settings(record))
    named = {f"aux:{k}": a.asnumpy() for k, a in arrays.items() if not k.startswith("grad")}
    if record["ours"]:
        named = record["ours"](values, named)
    return named if out else {**named, "out0": found.asnumpy()}


def make(folder, group="") -> None:
    """Run every record of a group."""
    for name in [group] if group else FIRST:
        importlib.import_module(f"make_cases_{name}")  # which enters them
    stem = f"operators-{group}" if group else "operators"
    facts, arrays = [], {}
    for record in CASES:
        values = inputs(record)
        runner = record_symbol if record["mode"] == "symbol" else record_update
        try:
            found = runner(record, values)
        except mx.MXNetError as e:
            print(f"{record['id']}: {str(e).strip().splitlines()[-1]}", file=sys.stderr)
            continue
        arrays.update({f"{len(facts)}/{name}": a for name, a in found.items()})
        plain = {k: v for k, v in record.items() if k != "ours"}
        plain["grad"] = wanted(record, values) if record["mode"] == "symbol" else []
        kept = ("op", "train", "id", *(("heads",) if record["heads"] == [] else ()))
        facts.append({k: v for k, v in plain.items() if v or k in kept})
    lines = ",\n".join(json.dumps(f) for f in facts)
    (folder / f"{stem}.json").write_text(f"[\n{lines}\n]\n")
    np.savez_compressed(folder / f"{stem}.npz", **arrays)
    CASES.clear()
    print(f"{len(facts)} records of operators, {len(arrays)} arrays")
