"""Model files of older versions, brought to the layout of 1.9: one step for each change.

Until 0.8 a node kept its operator's parameters under `param` and the user's attributes under
`attr`; until 0.12 both stood under `attr`; since then under `attrs`. A version is written since
0.9. What changed in meaning is undone by the steps in `STEPS`, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gnomon.base import FormatError, GnomonError
from gnomon.ops import registry

BEFORE_VERSIONS = 800  # files without a number were written by 0.8 or an older one
NEWEST = 20000

HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")


def hidden_key(key: str) -> str:
    """The key under which files keep the user's attribute `key`.

    >>> hidden_key("lr_mult"), hidden_key("kernel")
    ('__lr_mult__', 'kernel')
    """
    return f"__{key}__" if key in HIDDEN else key


def upgrade(found: dict[str, Any], where: str) -> dict[str, Any]:
    """The object of a model file as MXNet 1.9 would have written it; `found` stays as it is.

    Raises:
        FormatError: a version that is no number, or from after 1.x.
    """
    written = version(found, where)
    graph = {**found, "nodes": [_one_table(spec) for spec in found["nodes"]]}
    graph["heads"] = [list(h) if isinstance(h, list) else h for h in found["heads"]]
    for step in STEPS:
        if written < step.until:
            step.apply(graph)
    return graph


def version(found: Mapping[str, Any], where: str) -> int:
    """The version that wrote the file: 10901 for 1.9.1."""
    attrs = found.get("attrs")
    entry = attrs.get("mxnet_version") if isinstance(attrs, dict) else None
    if entry is None:
        return BEFORE_VERSIONS
    number = entry[1] if isinstance(entry, list) and len(entry) == 2 else entry
    if type(number) is not int or not 0 < number < NEWEST:
        raise FormatError(f"{where}: expected mxnet_version below {NEWEST}, got {entry!r:.60}")
    return number


def _one_table(spec: Any) -> Any:
    """A node whose `param`, `attr` and `attrs` are joined into `attrs`."""
    if not isinstance(spec, dict):
        return spec
    node = {k: v for k, v in spec.items() if k not in ("param", "attr", "attrs")}
    tables = [spec.get(k) for k in ("param", "attr", "attrs")]
    if any(t is not None and not isinstance(t, dict) for t in tables):
        return spec  # the reader complains, with the node's name
    node["attrs"] = {hidden_key(k): v for t in tables for k, v in (t or {}).items()}
    if isinstance(node.get("inputs"), list):
        node["inputs"] = list(node["inputs"])
    return node


def _operators(graph: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The well-formed nodes that have an operator gnomon knows."""
    nodes = (n for n in graph["nodes"] if isinstance(n, dict) and isinstance(n.get("attrs"), dict))
    return [n for n in nodes if n.get("op") != "null" and registry.has(str(n.get("op")))]


def _hand_on_attributes(graph: dict[str, Any]) -> None:
    """Before 1.9.1 `weight_lr_mult` of an operator in a file meant `lr_mult` of its weight."""
    for node in _operators(graph):
        names = registry.find(node["op"]).input_names
        for key in list(node["attrs"]):
            name, _, attribute = _split_at(key, names)
            if attribute in HIDDEN:
                _give(graph, node, names.index(name), attribute, node["attrs"].pop(key))


def _split_at(key: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """`weight_lr_mult` as `weight`, `_`, `lr_mult`."""
    name = next((n for n in names if key.startswith(n + "_")), "")
    return name, "_", key[len(name) + 1 :]


def _give(graph: dict[str, Any], node: Mapping[str, Any], at: int, key: str, value: Any) -> None:
    """Set an attribute of the variable that `node` reads as its input number `at`."""
    inputs = node.get("inputs")
    if not isinstance(inputs, list) or at >= len(inputs):
        return
    number = inputs[at][0] if isinstance(inputs[at], list) and inputs[at] else -1
    nodes = graph["nodes"]
    source = nodes[number] if type(number) is int and 0 <= number < len(nodes) else None
    if not isinstance(source, dict) or source.get("op") != "null":
        return
    if isinstance(source.get("attrs"), dict):
        source["attrs"][hidden_key(key)] = value


def _add_missing_variables(graph: dict[str, Any]) -> None:
    """Before 0.9 states were not among the inputs: variables named after the node are added."""
    for op, node, inputs in _of_fixed_inputs(graph):
        for name in _input_names(op, node)[len(inputs) :]:
            inputs.append([len(graph["nodes"]), 0])
            attrs = {**node["attrs"], **initial(op.name, name)}
            new = {"op": "null", "name": f"{node['name']}_{name}", "attrs": attrs, "inputs": []}
            graph["nodes"].append(new)


def _tell_how_variables_start(graph: dict[str, Any]) -> None:
    """Before 0.9.4 files did not say how inputs start."""
    for op, node, inputs in _of_fixed_inputs(graph):
        for at, name in enumerate(_input_names(op, node)[: len(inputs)]):
            for key, value in initial(op.name, name).items():
                _give(graph, node, at, key, value)


def _of_fixed_inputs(graph: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any], list[Any]]]:
    """Operator, node and inputs of the nodes whose operators have a fixed number of inputs."""
    for node in _operators(graph):
        op, inputs = registry.find(node["op"]), node.get("inputs")
        if not op.variadic and isinstance(inputs, list):
            yield op, node, inputs


def _input_names(op: Any, node: Mapping[str, Any]) -> tuple[str, ...]:
    """The inputs; none where parameters are wrong, of which the reader complains."""
    own = {k: v for k, v in node["attrs"].items() if k in op.fields}
    try:
        return tuple(op.parse(own).inputs())
    except GnomonError:
        return ()


_NORMS = "BatchNorm", "_contrib_BatchNormWithReLU", "_contrib_SyncBatchNorm"
INITIAL: Mapping[tuple[str, str], str] = {
    **{(op, "moving_mean"): '["zero", {}]' for op in _NORMS},
    **{(op, "moving_var"): '["one", {}]' for op in _NORMS},
    ("IdentityAttachKLSparseReg", "moving_avg"): '["zero", {}]',
    ("LeakyReLU", "gamma"): '["Constant", {"value": 0.25}]',
    ("UpSampling", "weight"): '["bilinear", {}]',
}


def initial(op: str, name: str) -> dict[str, str]:
    """The attribute that says how an automatic variable starts, where its name does not say it.

    >>> initial("BatchNorm", "moving_var"), initial("BatchNorm", "gamma")
    ({'__init__': '["one", {}]'}, {})
    """
    value = INITIAL.get((op, name))
    return {} if value is None else {"__init__": value}


def _all_axes(graph: dict[str, Any]) -> None:
    """Before 0.9.5 `axis=-1` of argmax and argmin meant all axes."""
    for node in _operators(graph):
        if node["op"] in ("argmax", "argmin") and node["attrs"].get("axis") == "-1":
            del node["attrs"]["axis"]


class Step(NamedTuple):
    """A change of meaning, undone in files written before version `until`."""

    until: int
    apply: Callable[[dict[str, Any]], None]


STEPS = (
    Step(10901, _hand_on_attributes),
    Step(900, _add_missing_variables),
    Step(904, _tell_how_variables_start),
    Step(905, _all_axes),
)
