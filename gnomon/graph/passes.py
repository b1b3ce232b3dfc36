"""The passes that rewrite a graph before anything is laid out: one pipeline, in words."""

from __future__ import annotations

from collections.abc import Callable

from gnomon.graph.channels_last import channels_last
from gnomon.graph.common import common
from gnomon.graph.constants import constants
from gnomon.graph.fold_norm import fold_norm
from gnomon.graph.laid import Laid, Purpose
from gnomon.graph.pack_weights import pack_weights
from gnomon.graph.show import show, told
from gnomon.graph.simplify import simplify
from gnomon.runtime.libraries import dnn

Step = Callable[[Laid, Purpose], Laid]

PIPELINE: tuple[tuple[str, Step], ...] = (
    # first: what does nothing would hide pairs and equal nodes from the others
    ("simplify", simplify),
    # before constants: what is equal is computed once
    ("common", lambda laid, purpose: common(laid)),
    ("constants", lambda laid, purpose: constants(laid)),
    # while layers and normalizations are neighbours
    ("normalization into layers", fold_norm),
    ("packed weights", pack_weights),
    # last: it puts transposes around what the others leave
    ("channels last", lambda laid, purpose: channels_last(laid) if dnn.available() else laid),
)


def rewritten(laid: Laid, purpose: Purpose) -> Laid:
    """`laid` as all passes make it; at DEBUG 6 each that changes it shows before and after."""
    for name, step in PIPELINE:
        laid = told(name, laid, step(laid, purpose), lambda x: show(x.graph, x.shapes))
    return laid
