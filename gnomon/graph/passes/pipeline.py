"""The passes that rewrite a graph before anything is laid out: one pipeline, in words."""

from __future__ import annotations

from collections.abc import Callable

from gnomon.graph.passes.channels_last import channels_last
from gnomon.graph.passes.constants import constants
from gnomon.graph.passes.cse import cse
from gnomon.graph.passes.fold_norm import fold_norm
from gnomon.graph.passes.pack_weights import pack_weights
from gnomon.graph.passes.simplify import simplify
from gnomon.graph.show import show, told
from gnomon.graph.typed_graph import Purpose, TypedGraph
from gnomon.runtime.devices.device import find

Step = Callable[[TypedGraph, Purpose], TypedGraph]

PIPELINE: tuple[tuple[str, Step], ...] = (
    # first: what does nothing would hide pairs and equal nodes from the others
    ("simplify", simplify),
    # before constants: what is equal is computed once
    ("cse", cse),
    ("constants", lambda typed, purpose: constants(typed, purpose.device)),
    # while layers and normalizations are neighbours
    ("normalization into layers", fold_norm),
    ("packed weights", pack_weights),
    # last: it puts transposes around what the others leave
    ("channels last", channels_last),
)

#: what suits the processor's libraries alone
FOR_HOSTS = frozenset(("packed weights",))


def rewritten(typed: TypedGraph, purpose: Purpose) -> TypedGraph:
    """`typed` as all passes make it; at DEBUG 6 each that changes it shows before and after."""
    host = find(purpose.device).host
    for name, step in PIPELINE if host else [p for p in PIPELINE if p[0] not in FOR_HOSTS]:
        typed = told(name, typed, step(typed, purpose), lambda x: show(x.graph, x.shapes))
    return typed
