"""What the tests of translations share: a network written, checked, run by ONNX and read again."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import HealthCheck, settings
from onnx.reference import ReferenceEvaluator

import gnomon as mx
from gnomon.onnx import table
from gnomon.symbol.apply import apply as make

Arrays = Mapping[str, np.ndarray[Any, Any]]
RNG = np.random.default_rng(7)
SETTINGS = settings(
    max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def run(net: Any, args: Arrays, aux: Arrays | None = None) -> list[np.ndarray[Any, Any]]:
    """The outputs of a symbol that is bound to arrays."""
    bound = net.bind(mx.cpu(), _arrays(args), grad_req="null", aux_states=_arrays(aux or {}))
    return [y.asnumpy() for y in bound.forward(is_train=False)]


def _arrays(arrays: Arrays) -> dict[str, Any]:
    return {n: mx.nd.array(a, dtype=a.dtype) for n, a in arrays.items()}


def written(net: Any, inputs: Arrays, params: Arrays, path: Path | str, **how: Any) -> Any:
    """The model that a network is written as."""
    names = [n for n in net.list_inputs() if n in inputs]
    given = _arrays(params)
    shapes = how.pop("shapes", [inputs[n].shape for n in names])
    types = [inputs[n].dtype for n in names][: len(shapes)]
    mx.onnx.export_model(net, given, shapes, types, str(path), **how)
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    return model


def reference(model: Any, inputs: Arrays) -> list[np.ndarray[Any, Any]]:
    """The outputs of a model by ONNX's own Python."""
    named = {i.name for i in model.graph.input}
    given = {n: a for n, a in inputs.items() if n in named}
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, given)]


def translated(model: Any, names: set[str]) -> None:
    """AssertionError where a model has operators that the table does not tell of for `names`."""
    known = {kind for name in names for kind in table.exports()[name].to} | {"Identity"}
    used = {node.op_type for node in model.graph.node}
    extra = {kind for kind in used - known if not ("Global" in known and kind.startswith("Global"))}
    assert not extra, f"{names} are told to write {sorted(known)}, and write {sorted(extra)} too"


def check(
    net: Any,
    inputs: Arrays,
    params: Arrays | None = None,
    *,
    oracle: Any = reference,
    tolerance: float = 1e-4,
    again: bool = True,
    **how: Any,
) -> Any:
    """Write a network, run it by `oracle`, read it again and run that; the model.

    `oracle` None leaves the running by others out, `again` False the reading.
    """
    params = params or {}
    states = set(net.list_auxiliary_states())
    args = {n: a for n, a in {**inputs, **params}.items() if n not in states}
    expected = run(net, args, {n: a for n, a in params.items() if n in states})
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        model = written(net, inputs, params, path, **how)
        if oracle is not None:
            same(oracle(model, inputs), expected, tolerance)
        nodes = {n.op.name for n in net._graph.topo if n.op is not None}
        translated(model, nodes)
        if not again:
            return model
        back, arg_params, aux_params = mx.contrib.onnx.import_model(path)
    wanted = set(back.list_arguments())
    again = {n: a for n, a in inputs.items() if n in wanted}
    again |= {n: a.asnumpy() for n, a in arg_params.items()}
    found = run(back, again, {n: a.asnumpy() for n, a in aux_params.items()})
    same(found, expected, tolerance)
    return model


def same(found: Any, expected: Any, tolerance: float) -> None:
    """AssertionError where outputs differ."""
    assert len(found) == len(expected)
    for y, want in zip(found, expected, strict=True):
        assert y.shape == want.shape, f"shape {y.shape}, expected {want.shape}"
        assert y.dtype == want.dtype, f"dtype {y.dtype}, expected {want.dtype}"
        np.testing.assert_allclose(
            y.astype(np.float64), want.astype(np.float64), tolerance, tolerance, equal_nan=True
        )


def reals(*shape: int, low: float = -2, high: float = 2) -> np.ndarray[Any, Any]:
    return RNG.uniform(low, high, shape).astype(np.float32)


def op(name: str, inputs: dict[str, Any], **params: Any) -> Any:
    """The symbol of one operator on variables of these names."""
    variables = [mx.sym.var(n, dtype=a.dtype.name) for n, a in inputs.items()]
    return apply(name, variables, params)


def apply(name: str, variables: Any, params: Any, label: str = "node") -> Any:
    return make(mx.sym.Symbol, name, name, variables, {}, params, label)


def holds(name: str, *arrays: Any, **params: Any) -> Any:
    """Check one operator on arrays, as inputs of the model."""
    how = {k: params.pop(k) for k in ("oracle", "tolerance", "again") if k in params}
    inputs = {f"x{k}": a for k, a in enumerate(arrays)}
    return check(op(name, inputs, **params), inputs, **how)


def weighted(name: str, data: Any, *weights: Any, **params: Any) -> Any:
    """Check one operator on data, with the other arrays as parameters of the model."""
    how = {k: params.pop(k) for k in ("oracle", "tolerance") if k in params}
    arrays = {f"x{k}": a for k, a in enumerate((data, *weights))}
    net = op(name, arrays, **params)
    return check(net, {"x0": data}, {n: a for n, a in arrays.items() if n != "x0"}, **how)


def indices(high: int, *shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return RNG.integers(0, high, shape).astype(dtype)
