"""ONNX's own tests of operators: which of them an import passes, has no translation for, or fails.

    python tests/onnx/backend.py [PART OF A NAME]

A test's inputs that an import must know, such as axes, become constants of the model: it is read
with its inputs as they are first.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

import gnomon as mx
from gnomon.base import FormatError
from gnomon.onnx import importer
from gnomon.onnx.table import Unsupported

RANDOM = {"Bernoulli", "RandomUniformLike", "RandomNormalLike", "Multinomial"}


class Outcome(NamedTuple):
    """How a test went: 'pass', 'unsupported' or 'fail', and why."""

    name: str
    kind: str
    why: str = ""


def cases(part: str = "") -> list[Any]:
    """The tests of single operators that onnx makes."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return [c for c in found if c.model is not None and part in c.name]


def run(model: Any, inputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs of a model that is imported and bound to these inputs."""
    names = [i.name for i in model.graph.input]
    arrays = (np.asarray(x) if isinstance(x, np.generic) else x for x in inputs)
    given = dict(zip(names, arrays, strict=False))
    try:
        return evaluate(model, given)
    except Unsupported as error:
        if "must be constant" not in str(error) and "must not" not in str(error):
            raise
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for name, array in list(given.items())[1:]:
        if isinstance(array, np.ndarray):
            fixed.graph.initializer.append(numpy_helper.from_array(array, name))
            del given[name]
    return evaluate(fixed, given)


def evaluate(model: Any, given: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs for inputs by name; FormatError or Unsupported where it cannot be read."""
    if any(not isinstance(a, np.ndarray) or 0 in a.shape for a in given.values()):
        raise Unsupported("inputs that are no arrays, or without elements")
    reader, _, outputs = importer.read(model, "test", {})
    net = mx.sym.Group(outputs) if len(outputs) > 1 else outputs[0]
    arrays = {**reader.params, **{n: a.reshape(a.shape or (1,)) for n, a in given.items()}}
    wanted = {n: mx.nd.array(arrays[n], dtype=arrays[n].dtype) for n in net.list_inputs()}
    states = set(net.list_auxiliary_states())
    args = {n: a for n, a in wanted.items() if n not in states}
    aux = {n: a for n, a in wanted.items() if n in states}
    bound = net.bind(mx.cpu(), args, grad_req="null", aux_states=aux)
    return [y.asnumpy() for y in bound.forward()]


def outcome(case: Any) -> Outcome:
    """How a test goes."""
    random = {n.op_type for n in case.model.graph.node} & RANDOM
    for inputs, expected in case.data_sets:
        try:
            found = run(case.model, inputs)
        except (Unsupported, FormatError) as error:
            return Outcome(case.name, "unsupported", str(error))
        except Exception as error:  # a test that fails in any way is told
            return Outcome(case.name, "fail", f"{type(error).__name__}: {error}")
        why = None if random else difference(found, expected, case)
        if why:
            return Outcome(case.name, "fail", why)
    return Outcome(case.name, "pass")


def difference(found: Sequence[Any], expected: Sequence[Any], case: Any) -> str | None:
    """What differs between outputs."""
    for y, want in zip(found, expected, strict=True):
        want = np.asarray(want)
        if y.shape != (want.shape or (1,)):
            return f"shape {y.shape}, expected {want.shape}"
        if y.dtype != want.dtype:
            return f"dtype {y.dtype}, expected {want.dtype}"
        a, b = y.reshape(want.shape).astype(np.float64), want.astype(np.float64)
        least = 2e-2 if want.dtype.itemsize == 2 and want.dtype.kind not in "iu" else 1e-4
        if not np.allclose(a, b, max(case.rtol, least), max(case.atol, least / 10), equal_nan=True):
            return f"values {a.ravel()[:4]}, expected {b.ravel()[:4]}"
    return None


def outcomes(part: str = "") -> Iterator[Outcome]:
    """How each test goes."""
    return map(outcome, cases(part))


if __name__ == "__main__":
    counts = {"pass": 0, "unsupported": 0, "fail": 0}
    for result in outcomes(*sys.argv[1:]):
        counts[result.kind] += 1
        if result.kind == "fail" or sys.argv[1:]:
            print(*result)
    print(counts)
