"""Moving averages of normalizations: when they move, told to MXNet and to gnomon.

Each case takes the package, `mx`, and a context, and gives the moving mean of the first channel as
it is after the forward pass, and after each backward pass or what else may follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Case = Callable[[Any, Any], list[float]]

SHAPE = (4, 3, 5, 5)
CASES: dict[str, Case] = {}


def data(mx: Any, ctx: Any) -> Any:
    """A batch whose mean is about 2."""
    rng = np.random.RandomState(0)
    return mx.nd.array(rng.uniform(1, 3, SHAPE).astype("f"), ctx)


def seen(mx: Any, mean: Any) -> float:
    """The moving mean of the first channel, once all is done."""
    mx.nd.waitall()
    return float(mean.asnumpy()[0])


# --- operators on arrays --------------------------------------------------------------------------


def norm(op: str = "BatchNorm", **given: Any) -> Callable[..., Any]:
    """The operator on five arrays."""

    def call(mx: Any, arrays: Any) -> Any:
        space = mx.nd.contrib if op == "SyncBatchNorm" else mx.nd
        found = getattr(space, op)(*arrays, **{"fix_gamma": False, **given})
        return found[0] if isinstance(found, list) else found

    return call


def one(mx: Any, y: Any, x: Any, gamma: Any) -> None:
    """One backward pass."""
    y.backward()


def several(mx: Any, y: Any, x: Any, gamma: Any) -> Iterator[None]:
    """Three backward passes."""
    for k in range(3):
        yield y.backward(retain_graph=k < 2)


def none(mx: Any, y: Any, x: Any, gamma: Any) -> None:
    """No backward pass."""


def on_arrays(
    attached: dict[str, str],
    follow: Any = one,
    scope: Callable[[Any], Any] = lambda mx: mx.autograd.record(),
    call: Any = None,
    above: Callable[[Any, Any], Any] = lambda mx, y: y,
) -> Case:
    """The operator on arrays, of which those named are `attached` with these requests."""

    def case(mx: Any, ctx: Any) -> list[float]:
        x = data(mx, ctx)
        channels = 5 if call is not None and call is LAST else 3
        values = {"gamma": 1, "beta": 0, "mean": 0, "var": 1}
        arrays = {n: mx.nd.full((channels,), v, ctx) for n, v in values.items()}
        arrays = {"x": x, **arrays}
        for name, request in attached.items():
            arrays[name].attach_grad(request)
        with scope(mx):
            y = above(mx, (call or norm())(mx, list(arrays.values())))
        before = seen(mx, arrays["mean"])
        passes = follow(mx, y, x, arrays["gamma"]) or [None]
        return [before, *(seen(mx, arrays["mean"]) for _ in passes)]

    return case


LAST = norm(axis=3)
ALL = dict.fromkeys(("x", "gamma", "beta"), "write")

for names in ("x", "gamma", "beta", "x gamma beta"):
    for request in ("write", "add"):
        wanted = dict.fromkeys(names.split(), request)
        CASES[f"arrays: {request} {names}"] = on_arrays(wanted)
CASES["arrays: null gamma, write x"] = on_arrays({"gamma": "null", "x": "write"})
CASES["arrays: nothing"] = on_arrays({}, none)
CASES["arrays: null"] = on_arrays(dict.fromkeys(ALL, "null"), none)
CASES["arrays: the mean itself"] = on_arrays({"mean": "write", "x": "write"})
CASES["arrays: forward alone"] = on_arrays(ALL, none)
CASES["arrays: several times"] = on_arrays(ALL, several)
CASES["arrays: add several times"] = on_arrays(dict.fromkeys(ALL, "add"), several)

for name, scope in {
    "train_mode": lambda mx: mx.autograd.train_mode(),
    "pause": lambda mx: mx.autograd.pause(train_mode=True),
    "predict": lambda mx: mx.autograd.record(train_mode=False),
}.items():
    CASES[f"scope: {name}"] = on_arrays(ALL, one if name == "predict" else none, scope)

for name, above in {
    "BlockGrad": lambda mx, y: mx.nd.BlockGrad(y),
    "BlockGrad and more": lambda mx, y: mx.nd.BlockGrad(y) * 2,
    "MakeLoss": lambda mx, y: mx.nd.MakeLoss(y),
    "argmax": lambda mx, y: y.argmax(axis=1),
    "comparison": lambda mx, y: y > 0,
    "zeros_like": lambda mx, y: mx.nd.zeros_like(y),
    "times 0": lambda mx, y: y * 0,
}.items():
    CASES[f"above: {name}"] = on_arrays(ALL, above=above)
for request in ("write", "null"):
    CASES[f"below: BlockGrad, {request} gamma and beta"] = on_arrays(
        {"x": "write", "gamma": request, "beta": request},
        call=lambda mx, arrays: norm()(mx, [mx.nd.BlockGrad(arrays[0]), *arrays[1:]]),
    )
CASES["above: detach"] = on_arrays(ALL, none, above=lambda mx, y: y.detach())

for name, call in {
    "use_global_stats": norm(use_global_stats=True),
    "fix_gamma": norm(fix_gamma=True),
    "output_mean_var": norm(output_mean_var=True),
    "axis": LAST,
    "SyncBatchNorm": norm("SyncBatchNorm", key="averages", ndev=1),
}.items():
    CASES[f"operator: {name}"] = on_arrays(ALL, call=call)
    CASES[f"operator: {name}, forward alone"] = on_arrays(ALL, none, call=call)

CASES["grad: x"] = on_arrays(ALL, lambda mx, y, x, gamma: mx.autograd.grad(y, [x]) and None)
CASES["grad: gamma"] = on_arrays(ALL, lambda mx, y, x, gamma: mx.autograd.grad(y, [gamma]) and None)


def grad_beside(mx: Any, ctx: Any) -> list[float]:
    """Gradients of a variable are asked for that lies beside the normalization."""
    x, w = data(mx, ctx), mx.nd.ones((1,), ctx)
    mean = mx.nd.zeros((3,), ctx)
    x.attach_grad()
    w.attach_grad()
    ones = [mx.nd.ones((3,), ctx) for _ in range(3)]
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, ones[0], ones[1], mean, ones[2]).sum() * w
    mx.autograd.grad(y, [w])
    return [seen(mx, mean)]


def created(mx: Any, ctx: Any) -> list[float]:
    """The gradient is to be differentiated again."""
    x, mean = data(mx, ctx), mx.nd.zeros((3,), ctx)
    x.attach_grad()
    ones = [mx.nd.ones((3,), ctx) for _ in range(3)]
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, ones[0], ones[1], mean, ones[2])
        mx.autograd.grad(y, [x], create_graph=True, retain_graph=True)
    return [seen(mx, mean)]


CASES["grad: beside"] = grad_beside
CASES["grad: create_graph"] = created

# --- bound graphs ---------------------------------------------------------------------------------

REQUESTS = {
    "all": "write",
    "add": "add",
    "none": "null",
    "data": {"data": "write", "bn_gamma": "null", "bn_beta": "null"},
    "gamma": {"data": "null", "bn_gamma": "write", "bn_beta": "null"},
    "beta": {"data": "null", "bn_gamma": "null", "bn_beta": "write"},
}


def bound(
    make: Callable[[Any], Any],
    requests: Any = "write",
    backwards: int = 2,
    train: bool = True,
    state: str = "bn_moving_mean",
) -> Case:
    """A bound graph, whose backward pass is called so many times."""

    def case(mx: Any, ctx: Any) -> list[float]:
        symbol = make(mx)
        names = symbol.list_arguments()
        given = (
            requests if isinstance(requests, str) else {n: requests.get(n, "null") for n in names}
        )
        executor = symbol.simple_bind(ctx, data=SHAPE, grad_req=given)
        executor.arg_dict["data"][:] = data(mx, ctx) / 4
        for name, array in executor.arg_dict.items():
            if name.endswith(("gamma", "weight", "beta")):
                array[:] = 1
        for name, array in executor.aux_dict.items():
            array[:] = 1 if name.endswith("var") else 0
        outputs = executor.forward(is_train=train)
        found = [seen(mx, executor.aux_dict[state])]
        for _ in range(backwards):
            executor.backward([mx.nd.ones(x.shape, ctx) for x in outputs])
            found.append(seen(mx, executor.aux_dict[state]))
        return found

    return case


def bn(mx: Any, below: Any = None, name: str = "bn", **given: Any) -> Any:
    """One normalization."""
    below = mx.sym.var("data") if below is None else below
    return mx.sym.BatchNorm(below, name=name, **{"fix_gamma": False, **given})


def fc(mx: Any, below: Any) -> Any:
    """One layer."""
    return mx.sym.FullyConnected(below, num_hidden=2, name="fc")


def beside(mx: Any) -> Any:
    """A loss, and a normalization that no gradient comes to."""
    x = mx.sym.var("data")
    return mx.sym.Group([mx.sym.MakeLoss(x * 2), mx.sym.BlockGrad(bn(mx, x))])


for name, requests in REQUESTS.items():
    CASES[f"bound: {name}"] = bound(bn, requests)
CASES["bound: predict"] = bound(bn, train=False)
CASES["bound: use_global_stats"] = bound(lambda mx: bn(mx, use_global_stats=True))
CASES["bound: fix_gamma"] = bound(lambda mx: bn(mx, fix_gamma=True), REQUESTS["gamma"])
CASES["bound: MakeLoss"] = bound(lambda mx: mx.sym.MakeLoss(bn(mx)))
CASES["bound: BlockGrad"] = bound(lambda mx: mx.sym.BlockGrad(bn(mx)))
CASES["bound: BlockGrad below a layer"] = bound(lambda mx: fc(mx, mx.sym.BlockGrad(bn(mx))))
CASES["bound: above BlockGrad"] = bound(lambda mx: bn(mx, mx.sym.BlockGrad(mx.sym.var("data"))))
CASES["bound: frozen above BlockGrad"] = bound(
    lambda mx: bn(mx, mx.sym.BlockGrad(mx.sym.var("data"))), REQUESTS["data"]
)
CASES["bound: argmax"] = bound(lambda mx: mx.sym.argmax(bn(mx), axis=1))
CASES["bound: frozen below a layer"] = bound(
    lambda mx: fc(mx, bn(mx)), {"fc_weight": "write", "fc_bias": "write"}
)
CASES["bound: frozen below another"] = bound(
    lambda mx: bn(mx, bn(mx), "above"), {"above_gamma": "write", "above_beta": "write"}
)
CASES["bound: above a frozen one"] = bound(
    lambda mx: bn(mx, bn(mx), "above"), {"above_gamma": "write"}, state="above_moving_mean"
)
CASES["bound: beside a loss"] = bound(beside)
CASES["bound: BatchNorm_v1"] = bound(
    lambda mx: mx.sym.BatchNorm_v1(mx.sym.var("data"), name="bn", fix_gamma=False)
)
for name, requests in (("", "write"), (" frozen", "null")):
    CASES[f"bound: IdentityAttachKLSparseReg{name}"] = bound(
        lambda mx: mx.sym.IdentityAttachKLSparseReg(mx.sym.Flatten(mx.sym.var("data")), name="kl"),
        requests,
        state="kl_moving_avg",
    )

# --- modules and blocks ---------------------------------------------------------------------------


def module(fixed: list[str] | None, inputs_need_grad: bool = False) -> Case:
    """Two train steps of a module, and a forward pass of training."""

    def case(mx: Any, ctx: Any) -> list[float]:
        symbol = mx.sym.SoftmaxOutput(fc(mx, bn(mx)), name="softmax")
        made = mx.mod.Module(symbol, fixed_param_names=fixed, context=ctx)
        labels = [("softmax_label", SHAPE[:1])]
        made.bind([("data", SHAPE)], labels, inputs_need_grad=inputs_need_grad)
        made.init_params(mx.init.One())
        made.init_optimizer()
        batch = mx.io.DataBatch([data(mx, ctx)], [mx.nd.zeros(SHAPE[:1], ctx)])
        found = []
        for _ in range(2):
            made.forward_backward(batch)
            made.update()
            mx.nd.waitall()
            found.append(seen(mx, made.get_params()[1]["bn_moving_mean"]))
        made.forward(batch, is_train=True)
        mx.nd.waitall()
        return [*found, seen(mx, made.get_params()[1]["bn_moving_mean"])]

    return case


for fixed in (None, ["bn_gamma"], ["bn_gamma", "bn_beta"], ["fc_weight", "fc_bias"]):
    CASES[f"module: {fixed} fixed"] = module(fixed)
CASES["module: frozen below data"] = module(["bn_gamma", "bn_beta"], inputs_need_grad=True)


def both(mx: Any, net: Any, x: Any) -> None:
    """A train step."""
    with mx.autograd.record():
        y = net(x)
    y.backward()


def forward_alone(mx: Any, net: Any, x: Any) -> None:
    """A forward pass of training."""
    with mx.autograd.record():
        net(x)


def read_before(mx: Any, net: Any, x: Any) -> None:
    """Two forward passes, whose outputs are read before gradients are asked for."""
    outputs = []
    for k in range(2):
        with mx.autograd.record():
            outputs.append(net(x + k))
        outputs[-1].asnumpy()
    mx.autograd.backward(outputs)


def written(mx: Any, net: Any, x: Any) -> None:
    """The moving mean is written between the passes."""
    with mx.autograd.record():
        y = net(x)
    net[0].running_mean.data()[:] = 8
    y.backward()


def twice(mx: Any, net: Any, x: Any) -> None:
    """Two backward passes of one forward pass."""
    with mx.autograd.record():
        y = net(x)
    y.backward(retain_graph=True)
    y.backward()


def two_at_once(mx: Any, net: Any, x: Any) -> None:
    """The same layer on two batches; its averages move for the last one first."""
    with mx.autograd.record():
        y = net(x) + net(x * 3 + 2)
    y.backward()


def one_of_two(mx: Any, net: Any, x: Any) -> None:
    """Two forward passes, and one backward pass."""
    with mx.autograd.record():
        net(x)
        y = net(x)
    y.backward()


def calibrated(mx: Any, net: Any, x: Any) -> None:
    """Forward passes of training that nothing is asked of."""
    with mx.autograd.train_mode():
        net(x)
    with mx.autograd.record(), mx.autograd.pause(train_mode=True):
        net(x)


def blocked(mx: Any, net: Any, x: Any) -> None:
    """No gradient comes to the block."""
    with mx.autograd.record():
        y = mx.nd.BlockGrad(net(x))
    y.backward()


def blocked_when_read(mx: Any, net: Any, x: Any) -> None:
    """As `blocked`, but its output is read before."""
    with mx.autograd.record():
        y = net(x)
        y.asnumpy()
        z = mx.nd.BlockGrad(y)
    z.backward()


def on_data(mx: Any, net: Any, x: Any) -> None:
    """The gradient of the data is wanted, too."""
    x.attach_grad()
    both(mx, net, x)


STEPS = (
    both, forward_alone, read_before, written, twice, two_at_once, one_of_two, calibrated, blocked,
    blocked_when_read, on_data,
)  # fmt: skip


def block(step: Callable[..., None], hybrid: bool, freeze: str | None = None) -> Case:
    """A step of a normalization and a layer; `freeze` says which parameters get no gradients."""

    def case(mx: Any, ctx: Any) -> list[float]:
        nn = mx.gluon.nn
        net = nn.HybridSequential()
        net.add(nn.BatchNorm(in_channels=3), nn.Dense(2))
        net.initialize(ctx=ctx)
        if hybrid:
            net.hybridize()
        x = data(mx, ctx)
        net(x)
        if freeze is not None:
            net.collect_params(freeze).setattr("grad_req", "null")
        step(mx, net, x)
        return [seen(mx, net[0].running_mean.data(ctx))]

    return case


for hybrid in (False, True):
    kind = "hybrid" if hybrid else "block"
    for step in STEPS:
        CASES[f"{kind}: {step.__name__}"] = block(step, hybrid)
        CASES[f"{kind}: {step.__name__}, frozen"] = block(step, hybrid, ".*batchnorm")
    CASES[f"{kind}: gamma frozen"] = block(both, hybrid, ".*gamma")
    CASES[f"{kind}: all frozen, on data"] = block(on_data, hybrid, ".*")

# --- bodies of loops ------------------------------------------------------------------------------


def loop(kind: str, backwards: int, attach: bool = True) -> Case:
    """A normalization within control flow; the second batch is twice the first one."""

    def case(mx: Any, ctx: Any) -> list[float]:
        x, w = data(mx, ctx), mx.nd.ones((1,), ctx)
        mean, var = mx.nd.zeros((3,), ctx), mx.nd.ones((3,), ctx)
        ones, zeros = mx.nd.ones((3,), ctx), mx.nd.zeros((3,), ctx)
        w.attach_grad()
        if attach:
            x.attach_grad()

        def body(y: Any) -> Any:
            return mx.nd.BatchNorm(y, ones, zeros, mean, var) * w

        control = mx.nd.contrib
        with mx.autograd.record():
            if kind == "foreach":
                both = mx.nd.stack(x, x * 2)
                y, _ = control.foreach(lambda y, s: (body(y), s + 1), both, mx.nd.zeros((1,), ctx))
            elif kind == "while_loop":
                y, _ = control.while_loop(
                    lambda k, y: k < 2,
                    lambda k, y: (body(y), (k + 1, y * 2)),
                    (mx.nd.zeros((1,), ctx), x),
                    max_iterations=3,
                )
            else:
                y = control.cond(x.sum() > 0, lambda: body(x), lambda: x)
        y = y[0] if isinstance(y, list) else y
        found = [seen(mx, mean)]
        for k in range(backwards):
            y.backward(retain_graph=k < backwards - 1)
            found.append(seen(mx, mean))
        return found

    return case


for kind in ("foreach", "while_loop", "cond"):
    CASES[f"loop: {kind}"] = loop(kind, 2)
    CASES[f"loop: {kind}, frozen"] = loop(kind, 1, attach=False)
