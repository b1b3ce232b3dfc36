"""Models as MXNet 0.5 to 1.8 wrote them, symbol and parameters: both libraries load and run them.

Nothing here needs MXNet: the files are put together from what the versions wrote.

- Until 0.8 a node has `param`, `attr`, `backward_source_id` and inputs of two numbers; states are
  not among the inputs; there is no `node_row_ptr` and no version. Operators written by hand have
  the names of that time (`_Plus`, `_PlusScalar`, `ElementWiseSum`, `Softmax`).
- From 0.9 on inputs and heads have three numbers, and parameters and attributes stand together,
  under `attr` until 0.12 and under `attrs` since.
- Arrays in files: V0 without a magic number until 0.11 (32-bit sizes until 0.8), V1 with 64-bit
  sizes, V2 with kinds of storage, V3 where arrays may have no axes.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

import numpy as np

Nodes = list[tuple[Any, ...]]
HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")

# version -> (where parameters stand, mxnet_version or None, version of arrays in files)
VERSIONS: dict[str, tuple[str, int | None, int]] = {
    "0.5": ("param", None, 0),
    "0.8": ("param", None, 0),
    "0.9.3": ("attr", 903, 1),
    "0.9.4": ("attr", 904, 1),
    "0.9.5": ("attr", 905, 1),
    "0.11": ("attr", 1100, 1),
    "1.0": ("attrs", 10000, 2),
    "1.3": ("attrs", 10300, 2),
    "1.6": ("attrs", 10600, 2),
    "1.8": ("attrs", 10800, 3),
}
STATES = {"BatchNorm": ("moving_mean", "moving_var"), "CuDNNBatchNorm": (),
          "BatchNorm_v1": ("moving_mean", "moving_var"),
          "IdentityAttachKLSparseReg": ("moving_avg",)}  # fmt: skip


class Model(NamedTuple):
    """Nodes `(operator, name, inputs, parameters, attributes)` in order, the shapes of the data."""

    nodes: Nodes
    shapes: dict[str, tuple[int, ...]]
    heads: tuple[str, ...] = ()
    versions: tuple[str, ...] = tuple(VERSIONS)


def var(*names: str) -> Nodes:
    """Variables."""
    return [("null", name, (), {}) for name in names]


def layer(op: str, name: str, data: str, weights: str = "weight bias", **params: Any) -> Nodes:
    """An operator and the variables of its weights."""
    own = [f"{name}_{each}" for each in weights.split()]
    return [*var(*own), (op, name, (data, *own), params)]


def strings(params: dict[str, Any]) -> dict[str, str]:
    """Parameters as files have them."""
    return {k: str(v) for k, v in params.items()}


LENET = Model(
    [
        *var("data"),
        *layer("Convolution", "conv1", "data", kernel=(3, 3), num_filter=4, stride=(1, 1),
               pad=(0, 0), dilate=(1, 1), num_group=1, workspace=512, no_bias=False),
        ("Activation", "tanh1", ("conv1",), {"act_type": "tanh"}),
        ("Pooling", "pool1", ("tanh1",), {"pool_type": "max", "kernel": (2, 2), "stride": (2, 2),
                                          "pad": (0, 0)}),
        ("Flatten", "flatten", ("pool1",), {}),
        *layer("FullyConnected", "fc1", "flatten", num_hidden=5, no_bias=False),
        ("Dropout", "drop", ("fc1",), {"p": 0.5}),
        *var("softmax_label"),
        ("SoftmaxOutput", "softmax", ("drop", "softmax_label"), {}),
    ],
    {"data": (2, 3, 8, 9), "softmax_label": (2,)},
)  # fmt: skip

INCEPTION = Model(
    [
        *var("data"),
        *layer("Convolution", "conv", "data", kernel=(3, 3), num_filter=4, stride=(2, 2),
               pad=(1, 1), no_bias="True", weights="weight"),
        *layer("BatchNorm", "bn", "conv", "gamma beta", eps=0.001, momentum=0.9, fix_gamma="False",
               use_global_stats="False"),
        ("Activation", "relu", ("bn",), {"act_type": "relu"}),
        ("Pooling", "avg", ("relu",), {"pool_type": "avg", "kernel": (3, 3), "stride": (1, 1),
                                       "pad": (1, 1)}),
        ("Pooling", "full", ("relu",), {"pool_type": "max", "kernel": (3, 3), "stride": (1, 1),
                                        "pad": (1, 1), "pooling_convention": "full"}),
        ("Concat", "join", ("avg", "full", "relu"), {"num_args": 3, "dim": 1}),
        ("LRN", "lrn", ("join",), {"alpha": 0.001, "beta": 0.75, "knorm": 2, "nsize": 5}),
        *layer("BatchNorm", "bn2", "lrn", "gamma beta", fix_gamma="True"),
        ("Pooling", "global", ("bn2",), {"pool_type": "avg", "kernel": (5, 5),
                                         "global_pool": "True"}),
        ("Reshape", "flat", ("global",), {"target_shape": (0, 12)}),
        *layer("FullyConnected", "fc", "flat", num_hidden=3),
        *var("softmax_label"),
        ("Softmax", "softmax", ("fc", "softmax_label"), {"grad_scale": 1}),
    ],
    {"data": (2, 3, 9, 9), "softmax_label": (2,)},
)  # fmt: skip

FIRST_KINDS = Model(
    [
        *var("data"),
        *layer("Convolution_v1", "conv", "data", kernel=(3, 3), num_filter=3, pad=(1, 1)),
        *layer("BatchNorm_v1", "bn", "conv", "gamma beta", fix_gamma="False"),
        ("Pooling_v1", "pool", ("bn",), {"pool_type": "max", "kernel": (2, 2), "stride": (2, 2)}),
        *var("target_label"),
        ("SoftmaxActivation", "soft", ("pool",), {"mode": "channel"}),
        ("MAERegressionOutput", "target", ("soft", "target_label"), {"grad_scale": 2}),
    ],
    {"data": (2, 3, 6, 6), "target_label": (2, 3, 3, 3)},
    versions=("0.9.3", "0.11", "1.0", "1.6"),
)  # fmt: skip

ARITHMETIC = Model(
    [
        *var("a", "b"),
        ("_Plus", "_plus0", ("a", "b"), {}),
        ("_Minus", "_minus0", ("_plus0", "b"), {}),
        ("_Mul", "_mul0", ("_minus0", "b"), {}),
        ("_Div", "_div0", ("_mul0", "b"), {}),
        ("_PlusScalar", "_plusscalar0", ("_div0",), {"scalar": 1.5}),
        ("_RMinusScalar", "_rminusscalar0", ("_plusscalar0",), {"scalar": 3}),
        ("_MulScalar", "_mulscalar0", ("_rminusscalar0",), {"scalar": "0.5"}),
        ("_MinusScalar", "_minusscalar0", ("_mulscalar0",), {"scalar": "0.25"}),
        ("_DivScalar", "_divscalar0", ("_minusscalar0",), {"scalar": "2"}),
        ("square", "square0", ("_divscalar0",), {}),
        ("_PlusScalar", "_plusscalar1", ("square0",), {"scalar": "1"}),
        ("_RDivScalar", "_rdivscalar0", ("_plusscalar1",), {"scalar": "1"}),
        ("_PowerScalar", "_powerscalar0", ("_rdivscalar0",), {"scalar": "2"}),
        ("_Maximum", "_maximum0", ("_powerscalar0", "a"), {}),
        ("_MinimumScalar", "_minimumscalar0", ("_maximum0",), {"scalar": "0.75"}),
        ("ElementWiseSum", "sum", ("_minimumscalar0", "a", "b"), {"num_args": 3}),
        ("sum_axis", "total", ("sum",), {"axis": 1, "keepdims": "True"}),
        ("broadcast_minus", "less", ("sum", "total"), {}),
        ("SwapAxis", "swap", ("less",), {"dim1": 1, "dim2": 2}),
        ("SliceChannel", "parts", ("swap",), {"num_outputs": 2, "axis": 1, "squeeze_axis": False}),
        ("BlockGrad", "block", (("parts", 1),), {}),
        ("Concat", "join", (("parts", 0), "block"), {"num_args": 2, "dim": 2}),
        ("Cast", "cast", ("join",), {"dtype": "float32"}),
        ("max_axis", "most", ("cast",), {"axis": 1}),
        ("MakeLoss", "loss", ("most",), {"grad_scale": 0.5}),
    ],
    {"a": (2, 3, 4), "b": (2, 3, 4)},
    ("loss", "cast"),
)  # fmt: skip

UPSCALED = Model(
    [
        *var("data", "like"),
        *layer("Deconvolution", "up", "data", "weight", kernel=(4, 4), stride=(2, 2), pad=(1, 1),
               num_filter=3, no_bias="True"),
        ("Crop", "crop", ("up", "like"), {"num_args": 2, "center_crop": "True"}),
        ("UpSampling", "near", ("data",), {"scale": 2, "sample_type": "nearest", "num_args": 1}),
        ("Crop", "part", ("near",), {"num_args": 1, "offset": (1, 1), "h_w": (5, 6)}),
        ("LeakyReLU", "leaky", ("crop",), {"act_type": "leaky", "slope": 0.25}),
        *layer("LeakyReLU", "prelu", "leaky", "gamma", act_type="prelu"),
        ("L2Normalization", "unit", ("prelu",), {"eps": "1e-10", "mode": "channel"}),
        ("_Plus", "both", ("unit", "part"), {}),
        ("Reshape", "turned", ("both",), {"shape": (2, -1)}),
        ("LinearRegressionOutput", "out", ("turned", "out_label"), {}),
    ],
    {"data": (2, 3, 4, 4), "like": (2, 1, 5, 6), "out_label": (2, 90)},
)  # fmt: skip
UPSCALED.nodes[-1:-1] = var("out_label")

LANGUAGE = Model(
    [
        *var("data", "state"),
        *layer("Embedding", "embed", "data", "weight", input_dim=7, output_dim=4),
        ("SliceChannel", "steps", ("embed",), {"num_outputs": 3, "squeeze_axis": "True",
                                               "axis": 1}),
        *var("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias"),
        *(
            node
            for t in range(3)
            for node in (
                ("FullyConnected", f"t{t}_i2h", (("steps", t), "i2h_weight", "i2h_bias"),
                 {"num_hidden": 4}),
                ("FullyConnected", f"t{t}_h2h", (f"t{t - 1}_h" if t else "state", "h2h_weight",
                                                 "h2h_bias"), {"num_hidden": 4}),
                ("_Plus", f"t{t}_sum", (f"t{t}_i2h", f"t{t}_h2h"), {}),
                ("Activation", f"t{t}_h", (f"t{t}_sum",), {"act_type": "sigmoid"}),
            )
        ),
        ("Concat", "all", ("t0_h", "t1_h", "t2_h"), {"num_args": 3, "dim": 0}),
        *layer("FullyConnected", "pred", "all", num_hidden=7),
        *var("softmax_label"),
        ("SwapAxis", "turned", ("softmax_label",), {"dim1": 0, "dim2": 1}),
        ("Reshape", "labels", ("turned",), {"target_shape": (0,)}),
        ("SoftmaxOutput", "softmax", ("pred", "labels"),
         {"use_ignore": "True", "ignore_label": 0, "normalization": "valid"}),
    ],
    {"data": (2, 3), "state": (2, 4), "softmax_label": (2, 3)},
    ("softmax", "t2_h"),
)  # fmt: skip

ATTRIBUTES = Model(
    [
        ("null", "data", (), {}, {"ctx_group": "dev1"}),
        ("null", "fc1_weight", (), {}, {"lr_mult": "0.5", "wd_mult": "0.0"}),
        *var("fc1_bias"),
        ("FullyConnected", "fc1", ("data", "fc1_weight", "fc1_bias"), {"num_hidden": 4},
         {"ctx_group": "dev1", "weight_lr_mult": "0.1", "force_mirroring": "True",
          "__mood__": "quiet"}),
        ("argmax", "best", ("fc1",), {"axis": -1}),
        ("BlockGrad", "stop", ("best",), {}, {"mirror_stage": "1"}),
        ("MakeLoss", "loss", ("fc1",), {}),
    ],
    {"data": (3, 5)},
    ("loss", "stop"),
)  # fmt: skip

DETECTION = Model(
    [
        *var("data", "rois"),
        *layer("Convolution", "conv", "data", kernel=(1, 1), num_filter=4, layout="NCHW",
               cudnn_off="True", cudnn_tune="off"),
        ("ROIPooling", "pool", ("conv", "rois"), {"pooled_size": (2, 2), "spatial_scale": 0.5}),
        ("smooth_l1", "smooth", ("pool",), {"scalar": 3.0}),
        ("_contrib_MultiBoxPrior", "prior", ("conv",), {"sizes": (0.2, 0.3), "ratios": (1, 2),
                                                        "clip": "True"}),
        ("transpose", "turned", ("smooth",), {"axes": (0, 2, 3, 1)}),
        ("Flatten", "flat", ("turned",), {}),
        ("MakeLoss", "loss", ("flat",), {"normalization": "batch"}),
    ],
    {"data": (1, 3, 6, 6), "rois": (2, 5)},
    ("loss", "prior"),
    ("0.9.3", "0.11", "1.0", "1.3", "1.6", "1.8"),
)  # fmt: skip

MODELS = {
    "lenet": LENET, "inception": INCEPTION, "first kinds": FIRST_KINDS, "arithmetic": ARITHMETIC,
    "upscaled": UPSCALED, "language": LANGUAGE, "attributes": ATTRIBUTES, "detection": DETECTION,
}  # fmt: skip
CASES = [(name, version) for name, model in MODELS.items() for version in model.versions]


def symbol(model: Model, version: str) -> str:
    """The text of the model's `-symbol.json`."""
    key, number, _ = VERSIONS[version]
    nodes = model.nodes if number is None else with_states(model.nodes)
    at = {node[1]: k for k, node in enumerate(nodes)}
    heads = [[at[h], 0] for h in model.heads or (nodes[-1][1],)]
    listed = [entry(node, at, key) for node in nodes]
    tree: dict[str, Any] = {
        "nodes": listed,
        "arg_nodes": [k for k, node in enumerate(nodes) if node[0] == "null"],
        "heads": heads if number is None else [[*h, 0] for h in heads],
    }
    if number is not None:
        counts = [outputs(node) for node in nodes]
        tree["node_row_ptr"] = np.concatenate([[0], np.cumsum(counts)]).tolist()
        tree["attrs"] = {"mxnet_version": ["int", number]}
        if number >= 10600:
            tree["attrs"]["is_np_shape"] = ["int", 0]
    return json.dumps(tree, indent=2)


def with_states(nodes: Nodes) -> Nodes:
    """The nodes, with variables for states, as they are since 0.9."""
    found: Nodes = []
    for node in nodes:
        own = [f"{node[1]}_{state}" for state in STATES.get(node[0], ())]
        found += var(*own)
        found.append((*node[:2], (*node[2], *own), *node[3:]))
    return found


def outputs(node: tuple[Any, ...]) -> int:
    """How many outputs a version counted; readers do not look at it."""
    return int(node[3].get("num_outputs", 3 if node[0].startswith("BatchNorm") else 1))


def entry(node: tuple[Any, ...], at: dict[str, int], key: str) -> dict[str, Any]:
    """A node as the file has it."""
    op, name, inputs, params, *more = node
    pairs = [(at[i], 0) if isinstance(i, str) else (at[i[0]], i[1]) for i in inputs]
    attributes = more[0] if more else {}
    if key == "param":
        found = {"op": op, "param": strings(params), "name": name,
                 "inputs": [list(p) for p in pairs], "backward_source_id": -1}  # fmt: skip
        return {**found, "attr": attributes} if attributes else found
    hidden = {f"__{k}__" if k in HIDDEN else k: v for k, v in attributes.items()}
    states = len(STATES.get(op, ()))
    versions = [0] * (len(pairs) - states) + [1] * states
    found = {
        "op": op,
        "name": name,
        "inputs": [[*p, v] for p, v in zip(pairs, versions, strict=True)],
    }
    table = {**strings(params), **hidden}
    return {**found, key: table} if table else found


def values(model: Model, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """What all variables are: small numbers, places and boxes where they have to be such."""
    rng = np.random.RandomState(3)
    found = {}
    for name in sorted(shapes):
        drawn = rng.uniform(-1, 1, shapes[name])
        if name.endswith("_var") or name in ("b",):
            drawn = np.abs(drawn) + 0.5
        if name == "softmax_label" or (
            name == "data" and len(shapes[name]) == 2 and "state" in shapes
        ):
            drawn = np.floor(np.abs(drawn) * 3)
        if name == "rois":
            drawn = np.array([[0, 0, 0, 7, 7], [0, 2, 3, 9, 8]])
        found[name] = drawn.astype(np.float32)
    return found


def params(arrays: dict[str, np.ndarray], version: str) -> bytes:
    """The bytes of a `.params` file."""
    kind = VERSIONS[version][2]
    names = b"".join(struct.pack("<Q", len(n)) + n.encode() for n in arrays)
    body = b"".join(packed(a, kind) for a in arrays.values())
    count = struct.pack("<Q", len(arrays))
    return struct.pack("<QQ", 0x112, 0) + count + body + count + names


def packed(array: np.ndarray, kind: int) -> bytes:
    """One array as version `kind` of the format wrote it."""
    shape = struct.pack(f"<i{array.ndim}q", array.ndim, *array.shape)
    head = {
        0: struct.pack(f"<I{array.ndim}I", array.ndim, *array.shape),
        1: struct.pack("<I", 0xF993FAC8) + shape,
        2: struct.pack("<Ii", 0xF993FAC9, 0) + shape,
        3: struct.pack("<Ii", 0xF993FACA, 0) + shape,
    }[kind]
    return head + struct.pack("<iii", 1, 0, 0) + array.tobytes()


def undifferentiated(name: str) -> tuple[str, ...]:
    """Variables without a gradient: places of Embedding, and what MXNet's is wrong for.

    Where its input is not read elsewhere, `prelu` writes the input's gradient over the head's
    before it computes that of `gamma`.
    """
    return {"language": ("data",), "upscaled": ("prelu_gamma",)}.get(name, ())


def checked(mx: Any, folder: Any, name: str, version: str) -> dict[str, Any]:
    """Load a model from files of a version, run and differentiate it: names, values, gradients."""
    model = MODELS[name]
    (folder / "old-symbol.json").write_text(symbol(model, version))
    net = mx.sym.load(f"{folder}/old-symbol.json")
    shapes, _, states = net.infer_shape(**model.shapes)
    arguments, auxiliary = net.list_arguments(), net.list_auxiliary_states()
    known = dict(zip([*arguments, *auxiliary], [*shapes, *states], strict=True))
    given = values(model, known)
    fixed = {k: v for k, v in given.items() if k not in model.shapes}
    kinds = {k: "aux" if k in auxiliary else "arg" for k in fixed}
    data = params({f"{kinds[k]}:{k}": v for k, v in fixed.items()}, version)
    (folder / "old-0007.params").write_bytes(data)
    with mx.util.np_shape(VERSIONS[version][2] == 3):  # MXNet reads V3 only there
        net, weights, aux = mx.model.load_checkpoint(f"{folder}/old", 7)
    requests = {
        k: "null" if k in undifferentiated(name) or k.endswith("label") else "write"
        for k in arguments
    }
    executor = net.simple_bind(mx.cpu(), grad_req=requests, **model.shapes)
    executor.copy_params_from(weights, aux)
    inputs = {k: mx.nd.array(given[k]) for k in model.shapes}
    predicted = [x.asnumpy().tolist() for x in executor.forward(is_train=False, **inputs)]
    if name != "lenet":  # Dropout draws
        executor.forward(is_train=True, **inputs)
        executor.backward([mx.nd.ones(x.shape) for x in executor.outputs])
    gradients = {
        k: float(v.asnumpy().sum()) for k, v in executor.grad_dict.items() if v is not None
    }
    return {
        "arguments": arguments, "auxiliary": auxiliary, "outputs": net.list_outputs(),
        "attributes": net.attr_dict(), "predicted": predicted, "gradients": gradients,
        "json": json.loads(net.tojson()),
    }  # fmt: skip
