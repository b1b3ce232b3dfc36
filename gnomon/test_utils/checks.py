"""Checks of symbols: gradients against finite differences, results against what is expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gnomon import autograd, optimizer, random, symbol
from gnomon import ndarray as nd
from gnomon.base import ParamError, complaint
from gnomon.test_utils.draw import rand_ndarray
from gnomon.test_utils.tolerance import (
    as_numpy,
    assert_almost_equal,
    compare_ndarray_tuple,
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
)
from gnomon.test_utils.tools import default_context

Arrays = Mapping[str, Any] | Sequence[Any] | None


def simple_forward(sym: Any, ctx: Any = None, is_train: bool = False, **inputs: Any) -> Any:
    """The outputs of a symbol for NumPy arrays by name: one array, or a list of several."""
    ctx = ctx or default_context()
    arrays = {name: nd.array(x, ctx=ctx) for name, x in inputs.items()}
    executor = sym.bind(ctx, args=arrays)
    outputs = [x.asnumpy() for x in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def _by_name(where: str, names: Sequence[str], given: Arrays, ctx: Any, dtype: Any) -> dict:
    """`given` as arrays of gnomon by name, in the order of `names`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            expected = f"{len(names)} arrays for {', '.join(names)}"
            raise ParamError(complaint(where, "location", expected, len(given)))
        given = dict(zip(names, given, strict=True))
    if set(given) != set(names):
        raise ParamError(complaint(where, "location", f"arrays for {sorted(names)}", sorted(given)))
    return {name: _array(given[name], ctx, dtype) for name in names}


def _array(x: Any, ctx: Any, dtype: Any) -> Any:
    if isinstance(x, nd.NDArray):
        return x if x.stype != "default" else x.as_in_context(ctx)
    kept = dtype == "asnumpy" or dtype is None
    return nd.array(x, ctx=ctx, dtype=np.asarray(x).dtype if kept else dtype)


def numeric_grad(
    executor: Any,
    location: Mapping[str, Any],
    aux_states: Mapping[str, Any] | None = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: Any = np.float32,
) -> dict[str, Any]:
    """The gradient of the sum of all outputs by each array of `location`: central differences."""
    states = {k: as_numpy(v) for k, v in (aux_states or {}).items()}
    values = {k: as_numpy(v).astype(np.float64) for k, v in location.items()}

    def total(name: str, value: Any) -> float:
        executor.arg_dict[name][:] = value
        for key, state in states.items():
            executor.aux_dict[key][:] = state
        outputs = executor.forward(is_train=use_forward_train)
        return float(sum(as_numpy(x).astype(np.float64).sum() for x in outputs))

    for name, value in values.items():
        executor.arg_dict[name][:] = value
    found = {}
    for name, value in values.items():
        grad = np.zeros(value.shape)
        for at in np.ndindex(value.shape) if np.dtype(location[name].dtype).kind == "f" else ():
            moved = [value.copy(), value.copy()]
            moved[0][at] += eps / 2
            moved[1][at] -= eps / 2
            grad[at] = (total(name, moved[0]) - total(name, moved[1])) / eps
        executor.arg_dict[name][:] = value
        found[name] = grad.astype(dtype)
    return found


def check_numeric_gradient(
    sym: Any,
    location: Arrays,
    aux_states: Arrays = None,
    numeric_eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    grad_nodes: Any = None,
    use_forward_train: bool = True,
    ctx: Any = None,
    grad_stype_dict: Mapping[str, str] | None = None,
    dtype: Any = None,
) -> None:
    """Raise AssertionError unless gradients agree with finite differences.

    The gradient is that of a random weighted sum of each output. `grad_nodes` are the arguments
    that are looked at (all), or a mapping from them to the request 'write', 'add' or 'null'.
    """
    ctx, dtype = ctx or default_context(), np.dtype(dtype or default_dtype())
    eps = default_numeric_eps()[dtype] if numeric_eps is None else numeric_eps
    rtol = default_rtols()[dtype] if rtol is None else rtol
    atol = default_atols()[dtype] if atol is None else atol
    where = "check_numeric_gradient"
    args = _by_name(where, sym.list_arguments(), location, ctx, dtype)
    states = _by_name(where, sym.list_auxiliary_states(), aux_states, ctx, dtype)
    requests = _requests(grad_nodes, list(args))
    stypes = grad_stype_dict or {}
    grads = {k: _noise(args[k]).tostype(stypes.get(k, "default")) for k in requests}
    before = {k: as_numpy(v) for k, v in grads.items()}
    executor = _weighted(sym, args, grads, requests, states)
    executor.forward(is_train=True)
    executor.backward()
    got = {k: as_numpy(v) for k, v in grads.items()}
    wanted = {k: v for k, v in args.items() if k in requests}
    estimated = numeric_grad(executor, wanted, states, eps, use_forward_train, np.float64)
    for name, request in requests.items():
        start = {"write": 0, "add": before[name], "null": before[name]}[request]
        expected = start + (0 if request == "null" else estimated[name])
        names = (f"NUMERICAL_{name}", f"BACKWARD_{name}")
        assert_almost_equal(expected, got[name], rtol, atol, names)


def _weighted(sym: Any, args: Any, grads: Any, requests: Any, states: Any) -> Any:
    """An executor of the outputs, each element times a random weight, on copies.

    They are not summed here: `numeric_grad` does so in float64, where differences stay exact.
    """
    ctx = next(iter(args.values())).context
    weights = {
        f"__weights_of_output{n}": nd.array(np.random.rand(*shape) + 0.1, dtype=kind, ctx=ctx)
        for n, (shape, kind) in enumerate(_outputs(sym, ctx, args, states))
    }
    parts = [o * symbol.Variable(w) for o, w in zip(sym, weights, strict=True)]
    loss = symbol.Group([symbol.make_loss(part) for part in parts])
    arrays = {**{k: v.copy() for k, v in args.items()}, **weights}
    asked = {k: requests.get(k, "null") for k in arrays}
    return loss.bind(ctx, arrays, grads, asked, {k: v.copy() for k, v in states.items()})


def _outputs(sym: Any, ctx: Any, args: Any, states: Any) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each output; where values decide a shape, they are computed for that."""
    shapes = sym.infer_shape_partial(**{k: v.shape for k, v in args.items()})[1]
    if all(0 not in shape and -1 not in shape for shape in shapes):
        kinds = sym.infer_type(**{k: v.dtype for k, v in args.items()})[1]
        return list(zip(shapes, kinds, strict=True))
    copies = [{k: v.copy() for k, v in given.items()} for given in (args, states)]
    executor = sym.bind(ctx, copies[0], grad_req="null", aux_states=copies[1])
    return [(x.shape, x.dtype) for x in executor.forward()]


def _noise(array: Any) -> Any:
    """Random numbers in the shape and dtype of an array: what stands in a gradient before."""
    noise = np.random.normal(size=array.shape)
    return nd.array(noise, ctx=array.context, dtype=array.dtype)


def _requests(given: Any, names: Sequence[str]) -> dict[str, str]:
    if isinstance(given, Mapping):
        return dict(given)
    return dict.fromkeys(names if given is None else given, "write")


def check_symbolic_forward(
    sym: Any,
    location: Arrays,
    expected: Arrays,
    rtol: float | None = None,
    atol: float | None = None,
    aux_states: Arrays = None,
    ctx: Any = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[Any]:
    """The outputs of a symbol; AssertionError unless they are as `expected`."""
    ctx, where = ctx or default_context(), "check_symbolic_forward"
    args = _by_name(where, sym.list_arguments(), location, ctx, dtype)
    states = _by_name(where, sym.list_auxiliary_states(), aux_states, ctx, dtype)
    names = sym.list_outputs()
    wanted = [expected[n] for n in names] if isinstance(expected, Mapping) else expected
    executor = sym.bind(ctx, args, grad_req="null", aux_states=states)
    outputs = executor.forward(is_train=False)
    for name, want, got in zip(names, wanted, outputs, strict=True):
        pair = (f"EXPECTED_{name}", f"FORWARD_{name}")
        assert_almost_equal(as_numpy(want), as_numpy(got), rtol, atol, pair, equal_nan)
    return list(executor.outputs)


def check_symbolic_backward(
    sym: Any,
    location: Arrays,
    out_grads: Any,
    expected: Arrays,
    rtol: float | None = None,
    atol: float | None = None,
    aux_states: Arrays = None,
    grad_req: Any = "write",
    ctx: Any = None,
    grad_stypes: Any = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> dict[str, Any]:
    """The gradients of a symbol; AssertionError unless they are as `expected`.

    With a request 'add', `expected` is what is added; with 'null', nothing may change.
    """
    ctx, where = ctx or default_context(), "check_symbolic_backward"
    names = sym.list_arguments()
    args = _by_name(where, names, location, ctx, dtype)
    states = _by_name(where, sym.list_auxiliary_states(), aux_states, ctx, dtype)
    wanted = dict(expected if isinstance(expected, Mapping) else zip(names, expected, strict=True))
    if isinstance(grad_req, (list, tuple)):
        grad_req = dict(zip(names, grad_req, strict=True))
    requests = {k: grad_req if isinstance(grad_req, str) else grad_req[k] for k in wanted}
    kinds = grad_stypes if isinstance(grad_stypes, Mapping) else {}
    grads = {k: _start(args[k], kinds.get(k, args[k].stype), requests[k]) for k in wanted}
    before = {k: as_numpy(v) for k, v in grads.items()}
    all_requests = {k: requests.get(k, "null") for k in names}
    executor = sym.bind(ctx, args, grads, all_requests, states)
    executor.forward(is_train=True)
    executor.backward(_heads(sym, out_grads, ctx, dtype))
    for name, want in wanted.items():
        start = {"write": 0, "add": before[name], "null": before[name]}[requests[name]]
        want = start + (0 if requests[name] == "null" else as_numpy(want))
        pair = (f"EXPECTED_{name}", f"BACKWARD_{name}")
        assert_almost_equal(want, as_numpy(grads[name]), rtol, atol, pair, equal_nan)
    return dict(executor.grad_dict)


def _start(array: Any, stype: str, request: str) -> Any:
    """What stands in a gradient before: anything, since nothing of it may be left by 'write'."""
    if stype != "default":
        empty = nd.sparse.zeros(stype, array.shape, array.context, array.dtype)
        return empty if request == "write" else rand_ndarray(array.shape, stype, 0.5, array.dtype)
    return _noise(array)


def _heads(sym: Any, given: Any, ctx: Any, dtype: Any) -> Any:
    if isinstance(given, Mapping):
        given = [given[n] for n in sym.list_outputs()]
    if not isinstance(given, (list, tuple)):
        return given
    return [_array(x, ctx, dtype) for x in given]


def check_consistency(
    sym: Any,
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: Any = None,
    atol: Any = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, Any]:
    """Raise AssertionError unless a symbol gives the same in all of several settings.

    A setting is a mapping with `ctx`, the shapes of arguments by name and, if wanted, `type_dict`.
    What is right is said by the most precise one, or by `ground_truth`; it is given back, arrays
    by the names of outputs and of gradients.
    """
    symbols = sym if isinstance(sym, (list, tuple)) else [sym] * len(ctx_list)
    bound = [s.simple_bind(grad_req=grad_req, **c) for s, c in zip(symbols, ctx_list, strict=True)]
    args, states = dict(arg_params or {}), dict(aux_params or {})
    for name, array in bound[0].arg_dict.items():
        if name not in args:
            draw = np.random.uniform(-0.92, 0.92, array.shape) if use_uniform else None
            draw = np.random.normal(size=array.shape) if draw is None else draw
            args[name] = (draw * scale).astype(rand_type)
    for name in bound[0].aux_dict:
        states.setdefault(name, 0)
    for executor in bound:
        _fill(executor.arg_dict, args)
        _fill(executor.aux_dict, states)
        _fill(executor.grad_dict, dict.fromkeys(executor.grad_dict, 0))
    precision = [max(effective_dtype(x).itemsize for x in e.outputs) for e in bound]
    best = bound[int(np.argmax(precision))]
    names = symbols[0].list_outputs()
    results = [_run(e, grad_req, names) for e in bound]
    truth = dict(ground_truth or results[bound.index(best)])
    for number, (executor, result) in enumerate(zip(bound, results, strict=True)):
        if executor is best and ground_truth is None:
            continue
        kind = min((effective_dtype(x) for x in executor.outputs), key=lambda d: d.itemsize)
        limits = _limit(rtol, kind, default_rtols()), _limit(atol, kind, default_atols())
        _agree(result, truth, limits, (f"setting_{number}", "truth"), equal_nan, raise_on_err)
    return {name: nd.array(x, dtype=x.dtype) for name, x in truth.items()}


def _run(executor: Any, grad_req: Any, names: Sequence[str]) -> dict[str, Any]:
    """Outputs by `names`, and gradients for the outputs themselves as heads, by name."""
    outputs = executor.forward(is_train=grad_req != "null")
    found = {name: as_numpy(x) for name, x in zip(names, outputs, strict=True)}
    if grad_req == "null":
        return found
    executor.backward([nd.array(as_numpy(x), dtype=x.dtype, ctx=x.context) for x in outputs])
    grads = {k: as_numpy(v) for k, v in executor.grad_dict.items() if v is not None}
    return {**found, **grads}


def _fill(arrays: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    for name, array in arrays.items():
        if array is not None:
            array[:] = values[name]


def _limit(given: Any, kind: Any, default: Mapping[Any, float]) -> float:
    if isinstance(given, Mapping):
        given = {np.dtype(k): v for k, v in given.items()}.get(kind)
    return default.get(kind, 0) if given is None else given


def _agree(
    result: Mapping[str, Any],
    truth: Mapping[str, Any],
    limits: tuple[float, float],
    names: tuple[str, str],
    equal_nan: bool,
    raise_on_err: bool,
) -> None:
    for name, value in result.items():
        pair = (f"{names[0]}_{name}", f"{names[1]}_{name}")
        try:
            assert_almost_equal(value, as_numpy(truth[name]), *limits, pair, equal_nan)
        except AssertionError as error:
            if raise_on_err:
                raise
            print(error)


def check_speed(
    sym: Any,
    location: Mapping[str, Any] | None = None,
    ctx: Any = None,
    N: int = 20,
    grad_req: str | None = None,
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """Seconds of a forward pass (`typ='forward'`), or with its backward pass ('whole').

    `kwargs` are shapes by name, where `location` gives no arrays.
    """
    if typ not in ("whole", "forward"):
        raise ParamError(complaint("check_speed", "typ", "'whole' or 'forward'", repr(typ)))
    ctx, whole = ctx or default_context(), typ == "whole"
    request = grad_req or ("write" if whole else "null")
    shapes = kwargs if location is None else {k: v.shape for k, v in location.items()}
    executor = sym.simple_bind(ctx, grad_req=request, **shapes)
    for name, array in executor.arg_dict.items():
        given = (location or {}).get(name)
        array[:] = np.random.normal(size=array.shape) if given is None else as_numpy(given)

    def once() -> None:
        outputs = executor.forward(is_train=whole)
        if whole:
            executor.backward(outputs)

    once()
    nd.waitall()
    start = time.perf_counter()
    for _ in range(N):
        once()
    nd.waitall()
    return (time.perf_counter() - start) / N


def same_symbol_structure(sym1: Any, sym2: Any) -> bool:
    """Whether two symbols are the same operators on the same inputs, whatever their names."""
    first, second = (s.get_internals() for s in (sym1, sym2))
    if len(first) != len(second):
        return False
    pairs = [(a.get_children(), b.get_children()) for a, b in zip(first, second, strict=True)]
    return all(
        (a is None) == (b is None) and (a is None or len(a) == len(b)) for a, b in pairs
    ) and [n.op and n.op.name for n in sym1._graph.topo] == [
        n.op and n.op.name for n in sym2._graph.topo
    ]


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shape: Any,
    dtype: Any,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    compare_states: bool = True,
    ntensors: int = 1,
) -> None:
    """Raise AssertionError unless two optimizers change random weights alike."""
    shapes = [shape] if not shape or isinstance(shape[0], int) else list(shape)
    shapes = shapes * (ntensors if len(shapes) == 1 else 1)
    made: list[tuple[Any, list[Any], list[Any]]]
    made = [(optimizer.get_updater(each), [], []) for each in (opt1, opt2)]
    for each in shapes:
        weight = rand_ndarray(each, w_stype, density=1, dtype=dtype)
        grad = rand_ndarray(each, g_stype, density=0.5, dtype=dtype)
        for _, weights, grads in made:
            weights.append(weight.copy())
            grads.append(grad.copy())
    for update, weights, grads in made:
        random.seed(0)
        update(list(range(len(shapes))), grads, weights)
    (first, weights1, _), (second, weights2, _) = made
    compare_ndarray_tuple(tuple(weights1), tuple(weights2), rtol, atol)
    if compare_states:
        for key, state in first.states.items():
            compare_ndarray_tuple(state, second.states[key], rtol, atol)


def check_gluon_hybridize_consistency(
    net_builder: Callable[..., Any],
    data_l: Sequence[Any],
    numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Raise AssertionError unless a Gluon block gives the same hybridized and not.

    `net_builder(prefix=...)` makes the block; `numpy_func` of the data says what is right.
    """
    net = net_builder(prefix="net_")
    net.initialize()
    plain = _step(net, data_l, test_grad)
    net.hybridize()
    for name, value in _step(net, data_l, test_grad).items():
        assert_almost_equal(value, plain[name], rtol, atol, (f"HYBRID_{name}", f"PLAIN_{name}"))
    if numpy_func is not None:
        right = numpy_func(*map(as_numpy, data_l))
        assert_almost_equal(plain["output"], right, rtol, atol, ("PLAIN", "NUMPY"))


def _step(net: Any, data: Sequence[Any], with_grads: bool) -> dict[str, Any]:
    """A block's output, and the gradients of its inputs and parameters, by name."""
    inputs = [nd.array(as_numpy(x), dtype=x.dtype) for x in data]
    for x in inputs if with_grads else ():
        x.attach_grad()
    with autograd.record(with_grads):
        output = net(*inputs)
    found = {"output": as_numpy(output)}
    if with_grads:
        output.backward()
        found |= {f"input{n}": as_numpy(x.grad) for n, x in enumerate(inputs)}
        learned = net.collect_params().items()
        found |= {k: as_numpy(p.grad()) for k, p in learned if p.grad_req != "null"}
    return found
