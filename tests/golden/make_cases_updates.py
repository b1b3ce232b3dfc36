"""Records of optimizer updates of several weights, and of those that scale steps by norms."""

from make_case import case, n, u, v

RATES = {"lrs": [0.1, 0.2], "wds": [0.01, 0.0]}
LOADED = {"lrs": v(0.1, 0.2), "wds": v(0.01, 0.0)}
HALF = "float16"


def arrays(*names):
    """Two weights with their gradients and states side by side."""
    drawn = {"var": u(0.1, 1, 2, 3)}
    return {f"{name}_{k}": drawn.get(name, n(2, 3)) for k in range(2) for name in names}


def halves(*names):
    """Half-float weights and gradients; states are float32."""
    return {f"{name}_{k}": HALF for k in range(2) for name in names}


def several():
    """SGD of several weights."""
    for momentum in ((), ("mom",)):
        more = {"momentum": 0.9} if momentum else {}
        name = "sgd_mom_update" if momentum else "sgd_update"
        plain, mixed = ("weight", "grad", *momentum), ("weight", "grad", *momentum, "weight32")
        shared = {"num_weights": 2, "rescale_grad": 0.5, "clip_gradient": 0.4, **more}
        types = {"dtypes": halves("weight", "grad"), "mode": "update"}
        case(f"multi_{name}", arrays(*plain), {**RATES, **shared}, mode="update")
        case(f"multi_mp_{name}", arrays(*mixed), {**RATES, **shared}, **types)
        case(f"preloaded_multi_{name}", {**arrays(*plain), **LOADED}, shared, mode="update")
        case(f"preloaded_multi_mp_{name}", {**arrays(*mixed), **LOADED}, shared, **types)


def adamw():
    """Adam with a decay of its own; a scale that is not finite changes nothing."""
    inputs = {"weight": n(2, 3), "grad": n(2, 3), "mean": n(2, 3), "var": u(0.1, 1, 2, 3)}
    attrs = {"lr": 0.1, "eta": 0.5, "wd": 0.1, "clip_gradient": 0.7}
    for tag, scale in (("", 0.5), ("inf", float("inf")), ("nan", float("nan")), ("zero", 0.0)):
        case("_adamw_update", {**inputs, "rescale_grad": v(scale)}, attrs, tag=tag or "half",
             mode="update")  # fmt: skip
    mixed = {**inputs, "weight32": n(2, 3), "rescale_grad": v(0.5)}
    types = {"dtypes": {"weight": HALF, "grad": HALF}, "mode": "update"}
    case("_mp_adamw_update", mixed, attrs, **types)
    attrs = {"lrs": [0.1, 0.2], "wds": [0.1, 0.0], "etas": [0.5, 1], "num_weights": 2}
    names = ("weight", "grad", "mean", "var")
    case("_multi_adamw_update", {**arrays(*names), "rescale_grad": v(0.5)}, attrs, mode="update")
    inputs = {**arrays(*names, "weight32"), "rescale_grad": v(0.5)}
    types["dtypes"] = halves("weight", "grad")
    case("_multi_mp_adamw_update", inputs, attrs, **types)


def moved(values, found):
    """MXNet leaves the float32 copy as it was, so that the next update forgets this one."""
    step = 0.1 * values["r1"] / values["r2"] * values["g"]
    return {**found, "aux:weight32": values["weight32"] - step.astype("float32")}


def lamb():
    """LAMB in two phases and at once."""
    inputs = {"weight": n(2, 3), "grad": n(2, 3), "mean": n(2, 3), "var": u(0.1, 1, 2, 3)}
    for bias in (True, False):
        attrs = {"t": 3, "wd": 0.1, "bias_correction": bias, "rescale_grad": 0.5}
        case("lamb_update_phase1", inputs, attrs, tag=f"{bias}", mode="update", heads=[])
    mixed = {**inputs, "weight32": n(2, 3)}
    types = {"dtypes": {"weight": HALF, "grad": HALF}, "mode": "update"}
    case("mp_lamb_update_phase1", mixed, {"t": 3, "wd": 0.1}, **types, heads=[])
    inputs = {"weight": n(2, 3), "g": n(2, 3), "r1": v(2.0), "r2": v(3.0)}
    for tag, more in (("", {}), ("low", {"lower_bound": 2.5}), ("high", {"upper_bound": 1})):
        case("lamb_update_phase2", inputs, {"lr": 0.1, **more}, tag=tag or "free", mode="update")
    zero = {**inputs, "r1": v(0.0)}
    case("lamb_update_phase2", zero, {"lr": 0.1}, tag="zero", mode="update")
    mixed = {**inputs, "weight32": n(2, 3)}
    types = {"dtypes": {"weight": HALF}, "mode": "update"}
    case("mp_lamb_update_phase2", mixed, {"lr": 0.1}, **types, ours=moved)
    names = ("weight", "grad", "mean", "var")
    attrs = {"learning_rates": [0.1, 0.2], "wds": [0.1, 0], "step_count": [1, 3], "num_tensors": 2}
    case("_multi_lamb_update", arrays(*names), attrs, mode="update")
    bounds = {"lower_bound": 0.5, "upper_bound": 1.0, "clip_gradient": 0.3, "rescale_grad": 0.5}
    case("_multi_lamb_update", arrays(*names), {**attrs, **bounds}, tag="bounds", mode="update")
    types = {"dtypes": halves("weight", "grad"), "mode": "update"}
    inputs = arrays(*names, "weight32")
    for k in range(2):  # lengths are taken of the one here, of the other there
        inputs[f"weight_{k}"] = inputs[f"weight32_{k}"] = v([0.5, -1.25, k], [2, 0.75, -0.125])
    case("_multi_mp_lamb_update", inputs, attrs, **types)


def norms():
    """What these are made of."""
    inputs = {"lrs": v(0.1, 0.2, 0.3), "weights_sum_sq": v(4.0, 0.0, 9.0),
              "grads_sum_sq": v(1.0, 2.0, 0.0), "wds": v(0.1, 0.2, 0.3)}  # fmt: skip
    case("multi_lars", inputs, {"eta": 0.5, "eps": 1e-6, "rescale_grad": 0.5}, grad=False)
    case("multi_sum_sq", {"arg0": n(2, 3), "arg1": n(4)}, {"num_arrays": 2}, grad=False)


for group in (several, adamw, lamb, norms):
    group()
