"""The functions of `mx.sym` that the registry gives, made when they are first asked for."""

from __future__ import annotations

import functools

from gnomon.ops.namespace import Functions
from gnomon.symbol.apply import function
from gnomon.symbol.symbol import Symbol

_FUNCTIONS = Functions("gnomon.symbol", functools.partial(function, Symbol))
find, attributes, top = _FUNCTIONS.find, _FUNCTIONS.attributes, _FUNCTIONS.top
