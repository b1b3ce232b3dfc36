"""The passes that rewrite a graph before anything is laid out: one pipeline, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gnomon.base import Later
from gnomon.graph.passes.channels_last import channels_last
from gnomon.graph.passes.constants import constants
from gnomon.graph.passes.cse import cse
from gnomon.graph.passes.fold_norm import fold_norm
from gnomon.graph.passes.simplify import simplify
from gnomon.graph.show import show, told
from gnomon.graph.typed_graph import Purpose, TypedGraph
from gnomon.runtime.devices.device import find

if TYPE_CHECKING:
    from gnomon.graph.passes import pack_weights
else:  # it needs all of recurrent layers
    pack_weights = Later("gnomon.graph.passes.pack_weights")

Step = Callable[[TypedGraph, Purpose], TypedGraph]

PIPELINE: tuple[tuple[str, Step], ...] = (
    # first: what does nothing would hide pairs and equal nodes from the others
    ("simplify", simplify),
    # before constants: what is equal is computed once
    ("cse", cse),
    ("constants", lambda typed, purpose: constants(typed, purpose.device)),
    # while layers and normalizations are neighbours
    ("normalization into layers", fold_norm),
    # not for training, which changes the weights at every step
    ("packed weights", lambda t, purpose: t if purpose.differentiate else pack_weights.packed(t)),
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
