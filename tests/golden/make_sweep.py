"""sweep.json, sweep.npz: every operator with other dtypes, options and special numbers.

Each first record of an operator, whichever table it stands in, is tried with every other dtype,
with each choice and each truth value of its parameters exchanged, and with NaN and infinities.
What MXNet refuses is left out; what ends its process, too: each operator has a process of its own.
"""

import importlib
import json
import os
import pickle
import signal
import sys
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as np
from make_case import CASES
from make_operators import inputs, record_symbol, wanted

REALS = ("float16", "float32", "float64")
WHOLE = ("int32", "int64", "uint8", "int8")
HERE = Path(__file__).parent
SECONDS = 30


def bases():
    """The first records of each operator."""
    for path in sorted(HERE.glob("make_cases_*.py")):
        importlib.import_module(path.stem)
    found = {}
    for record in CASES:
        if record["mode"] == "symbol" and not record["ours"]:
            found.setdefault(record["op"], []).append(record)
    return {op: records[:2] for op, records in sorted(found.items())}


def of_whole_numbers(spec):
    """What is drawn where the dtype has no fractions."""
    return ["i", spec[1], 1, 6] if spec[0] in "nud" else spec


def by_dtype(base):
    """The record with every other dtype."""
    for dtype in (*REALS, *WHOLE):
        if dtype == base["dtype"]:
            continue
        made = {**base, "dtype": dtype, "id": f"{base['id']} {dtype}"}
        if dtype in WHOLE:
            given = {k: of_whole_numbers(spec) for k, spec in base["inputs"].items()}
            made.update(inputs=given, grad=False)
        yield made


def by_options(base):
    """The record with each choice, and each truth value, exchanged."""
    found = mx.operator.get_operator_arguments(base["op"])
    for name, text in zip(found.names, found.types, strict=True):
        others = []
        if text.startswith("{"):
            others = [x.strip("' ") for x in text[1 : text.index("}")].split(",")]
        elif text.startswith("boolean"):
            others = [str(str(base["attrs"].get(name, "default=1" in text)) != "True")]
        for value in others:
            if str(base["attrs"].get(name)) != value:
                attrs = {**base["attrs"], name: value}
                yield {**base, "attrs": attrs, "id": f"{base['id']} {name}={value}"}


def by_numbers(base):
    """The record with special numbers in place of drawn ones, one input after the other."""
    for name, spec in base["inputs"].items():
        if spec[0] in "nud" and base["dtype"] in REALS:
            given = {**base["inputs"], name: ["x", spec[1]]}
            yield {**base, "inputs": given, "id": f"{base['id']} special {name}"}


def results(records):
    """What MXNet makes of records, but of those that it refuses."""
    for record in records:
        values = inputs(record)
        try:
            found = record_symbol(record, values)
        except Exception:
            continue
        kept = ("op", "inputs", "attrs", "dtype", "dtypes", "train", "id", "heads")
        facts = {k: record[k] for k in kept if record[k] or k == "train"}
        names = wanted(record, values)
        yield {**facts, **({"grad": names} if names else {})}, found


def apart(records):
    """`results`, as far as a process of their own comes."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for each in results(records):
                pickle.dump(each, file)
                file.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"{records[0]['op']}: ended by {status}", file=sys.stderr)
        file.seek(0)
        found = []
        try:
            while True:
                found.append(pickle.load(file))
        except (EOFError, pickle.UnpicklingError):
            return found


def make(folder) -> None:
    """Write them."""
    facts, arrays = [], {}
    for first, *more in bases().values():
        records = [*by_dtype(first), *by_options(first), *by_numbers(first)]
        for record, found in apart(records + [x for r in more for x in by_options(r)]):
            arrays.update({f"{len(facts)}/{name}": a for name, a in found.items()})
            facts.append(record)
    lines = ",\n".join(json.dumps(f) for f in facts)
    (folder / "sweep.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    np.savez_compressed(folder / "sweep.npz", **arrays)
    print(f"{len(facts)} records, {len(arrays)} arrays")
