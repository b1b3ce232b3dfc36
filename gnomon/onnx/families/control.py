"""Branches whose condition is known when the model is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gnomon.onnx.reader import OnnxCall, Reader, Value
from gnomon.onnx.table import Unsupported, reads
from gnomon.onnx.weights import array


@reads("If")
def read_if(r: Reader, n: OnnxCall) -> Any:
    graph = n.need("then_branch" if n.const(0).all() else "else_branch")
    scope = {**n.scope, **{t.name: Value(t.name, array(t, str(Path()))) for t in graph.initializer}}
    problems = r.run(graph.node, scope)
    if problems:
        raise Unsupported("; ".join(problems))
    return [scope[o.name] for o in graph.output]
