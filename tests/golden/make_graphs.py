"""graphs.json: composition, inference and JSON; legacy.json: the same nets in older JSON."""

import json
import sys
import warnings
from pathlib import Path

import mxnet as mx
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import graphs

LISTS = ("list_arguments", "list_outputs", "list_auxiliary_states")
OLD = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")


def plain(result):
    """Shapes or types as JSON has them."""
    if result is None or isinstance(result, int):
        return result
    if isinstance(result, (list, tuple)):
        return [plain(r) for r in result]
    return np.dtype(result).name


def ask(function, **known):
    """What an inference gives, or the word error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(function(**known))
    except mx.MXNetError:
        return "error"


def facts(name):
    """Everything asked about one graph."""
    with mx.name.NameManager():
        symbol = graphs.GRAPHS[name](mx)
    shapes, types = graphs.SHAPES[name], graphs.TYPES[name]
    return {
        "arguments": symbol.list_arguments(),
        "outputs": symbol.list_outputs(),
        "auxiliary": symbol.list_auxiliary_states(),
        "internals": symbol.get_internals().list_outputs(),
        "name": symbol.name,
        "attributes": symbol.attr_dict(),
        "json": symbol.tojson(),
        "shapes": [[s, ask(symbol.infer_shape, **s)] for s in shapes],
        "partial": [[s, ask(symbol.infer_shape_partial, **s)] for s in shapes],
        "types": [[t, ask(symbol.infer_type, **t)] for t in types],
    }


def aged(text, style):
    """A symbol's JSON as older versions wrote it.

    `0.11` keeps parameters and attributes together in `attr`; `0.8` has `param` beside `attr`,
    inputs of two numbers, `backward_source_id` and no variables for auxiliary states; `1.0` has
    the inputs of 1.9 and an older version number.
    """
    tree = json.loads(text)
    if style == "0.8":
        tree = oldest(tree)
    elif style == "0.11":
        for node in tree["nodes"]:
            node["attr"] = node.pop("attrs", {})
        tree["attrs"]["mxnet_version"] = ["int", 1100]
    else:
        tree["attrs"]["mxnet_version"] = ["int", 10000]
    return json.dumps(tree)


def oldest(tree):
    """The tree of version 0.8."""
    states = {i[0] for node in tree["nodes"] for i in node["inputs"] if i[2] == 1}
    kept = [k for k in range(len(tree["nodes"])) if k not in states]
    new = {old: k for k, old in enumerate(kept)}
    nodes = []
    for old in kept:
        node = tree["nodes"][old]
        attrs = node.get("attrs", {})
        hidden = {k.strip("_"): v for k, v in attrs.items() if k.strip("_") in OLD}
        own = node["op"] != "null"
        nodes.append(
            {
                "op": node["op"],
                "param": {k: v for k, v in attrs.items() if own and not k.startswith("__")},
                "name": node["name"],
                "inputs": [[new[i[0]], i[1]] for i in node["inputs"] if i[0] in new],
                "backward_source_id": -1,
                **({"attr": hidden} if hidden else {}),
            }
        )
    return {
        "nodes": nodes,
        "arg_nodes": [new[k] for k in tree["arg_nodes"] if k in new],
        "heads": [[new[h[0]], h[1]] for h in tree["heads"]],
    }


def legacy():
    """Texts in old styles that the real library loads to the same graph."""
    found = []
    for name in ("mlp", "lenet", "branches", "normalised", "shapely"):
        with mx.name.NameManager():
            symbol = graphs.GRAPHS[name](mx)
        for style in ("0.8", "0.11", "1.0"):
            text = aged(symbol.tojson(), style)
            back = mx.sym.load_json(text)
            if any(getattr(back, m)() != getattr(symbol, m)() for m in LISTS):
                raise ValueError(f"{name} in {style} is another graph")
            found.append({"graph": name, "style": style, "json": text, "attrs": back.attr_dict()})
    return found


def make(folder) -> None:
    """Write both."""
    everything = {name: facts(name) for name in graphs.GRAPHS}
    (folder / "graphs.json").write_text(json.dumps(everything, indent=1) + "\n")
    lines = ",\n".join(json.dumps(record) for record in legacy())
    (folder / "legacy.json").write_text(f"[\n{lines}\n]\n")
