"""Requests and replies of the v2 inference protocol, as bytes: JSON, and tensors behind it.

Here is what a body means; how it comes and goes is `http.py`'s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from gnomon import __version__
from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint, nearest
from gnomon.ground.record import record
from gnomon.serving import tensors
from gnomon.serving.tensors import Spec, Values

LENGTH = "Inference-Header-Content-Length"  # bytes of JSON in front of tensors
BINARY = "binary_tensor_data"  # the extension's name
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


class Refused(Exception):
    """A request that is answered by an error: its status and what is said."""

    def __init__(self, status: int, text: str, close: bool = False) -> None:
        super().__init__(text)
        self.status, self.close = status, close


@record(slots=False)
class Asked:
    """What a request asks of a model: its tensors by name, and outputs with how each is sent."""

    inputs: dict[str, Values]
    outputs: dict[str, bool]  # name -> as bytes
    id: str | None = None


@record(frozen=False, slots=False)
class Reply:
    """A body in parts, and how many bytes of it are JSON where tensors follow."""

    parts: list[Any]
    json_bytes: int | None = None
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nbytes = sum(len(part) for part in self.parts)


_encoder = json.JSONEncoder(separators=(",", ":"))  # `json.dumps` would make one each time


def encoded(value: object) -> bytes:
    """JSON; what is not finite is NaN and Infinity, as Python and other servers write it."""
    return _encoder.encode(value).encode()


def server_metadata() -> dict[str, Any]:
    """What `GET /v2` tells."""
    return {"name": "gnomon", "version": __version__, "extensions": [BINARY]}


# --- requests -------------------------------------------------------------------------------


def read(
    where: str, body: bytes, header: str | None, inputs: Sequence[Spec], outputs: Sequence[Spec]
) -> Asked:
    """The request in `body`, whose first `header` bytes are JSON; all where that is None.

    Raises:
        Refused: something that is no request of the protocol, or not one that this model takes.
    """
    length = _header_length(where, body, header)
    try:
        asked = json.loads(body[:length])
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"{where}: the body is no JSON: {error}") from None
    try:
        _check(where, "body", asked, dict, "an object")
        rest = memoryview(body)[length:]
        parameters = _optional(where, asked, "parameters", dict, {})
        return Asked(
            _inputs(where, asked, inputs, rest),
            _outputs(where, asked, outputs, parameters.get("binary_data_output") is True),
            _optional(where, asked, "id", str, None),
        )
    except ParamError as error:
        raise Refused(400, str(error)) from None


def _header_length(where: str, body: bytes, header: str | None) -> int:
    if header is None:
        return len(body)
    length = int(header) if header.isascii() and header.isdecimal() and len(header) < 16 else -1
    if not 0 <= length <= len(body):
        expected = f"{LENGTH} from 0 to {len(body)}, the body's bytes"
        raise Refused(400, f"{where}: expected {expected}, got {header!r:.40}")
    return length


def _check(where: str, name: str, value: object, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise ParamError(complaint(where, name, expected, f"{value!r:.40}"))


def _optional(where: str, table: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = table.get(name)
    if value is None:
        return default
    _check(where, name, value, kind, _KINDS[kind])
    return value


def _named(
    where: str, key: str, entries: Sequence[Any], known: Mapping[str, Spec]
) -> dict[str, dict[str, Any]]:
    """The entries of a list by their names, each one that the model has, and none twice."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        _check(where, key, entry, dict, "a list of objects")
        name = entry.get("name")
        if not isinstance(name, str) or name not in known:
            hint = nearest(name, known) if isinstance(name, str) and len(name) < 99 else ""
            expected = f"names among {', '.join(known)}{hint}"
            raise ParamError(complaint(where, key, expected, f"{name!r:.80}"))
        if name in found:
            raise ParamError(complaint(where, key, "each name once", f"{name!r} twice"))
        found[name] = entry
    return found


def _inputs(
    where: str, asked: Mapping[str, Any], specs: Sequence[Spec], rest: memoryview
) -> dict[str, Values]:
    known = {spec.name: spec for spec in specs}
    listed = asked.get("inputs")
    _check(where, "inputs", listed, list, f"a list of {', '.join(known)}")
    entries = _named(where, "inputs", listed or [], known)
    if missing := [name for name in known if name not in entries]:
        raise ParamError(complaint(where, missing[0], "a tensor", "none"))
    found, begin = {}, 0
    for name, entry in entries.items():  # in the request's order, which is that of the bytes
        found[name], begin = _input(where, known[name], entry, rest, begin)
    if begin != len(rest):
        got = f"{len(rest)} bytes behind the JSON"
        raise ParamError(complaint(where, "inputs", f"{begin} of binary data", got))
    return found


def _input(
    where: str, spec: Spec, entry: Mapping[str, Any], rest: memoryview, begin: int
) -> tuple[Values, int]:
    """The tensor of an entry, and where the bytes behind its own begin."""
    spec.check_datatype(where, entry.get("datatype"))
    shape = spec.check_shape(where, entry.get("shape"))
    size = _optional(where, entry, "parameters", dict, {}).get("binary_data_size")
    if size is None:
        return tensors.from_json(where, spec, shape, entry.get("data")), begin
    if type(size) is not int or not 0 <= size <= len(rest) - begin:
        expected = f"binary_data_size of at most {len(rest) - begin}, what the body has"
        raise ParamError(complaint(where, spec.name, expected, f"{size!r:.40}"))
    if "data" in entry:
        raise ParamError(complaint(where, spec.name, "data or binary_data_size", "both"))
    return tensors.from_bytes(where, spec, shape, rest[begin : begin + size]), begin + size


def _outputs(
    where: str, asked: Mapping[str, Any], specs: Sequence[Spec], binary: bool
) -> dict[str, bool]:
    """The outputs that are wanted, all where none is named; True for those sent as bytes."""
    known = {spec.name: spec for spec in specs}
    listed = _optional(where, asked, "outputs", list, [])
    if not listed:
        return dict.fromkeys(known, binary)
    found = {}
    for name, entry in _named(where, "outputs", listed, known).items():
        own = _optional(where, entry, "parameters", dict, {}).get("binary_data", binary)
        found[name] = own is True
    return found


# --- replies --------------------------------------------------------------------------------


def reply(model: str, version: str, asked: Asked, values: Mapping[str, Values]) -> Reply:
    """The answer to a request, given the outputs by name."""
    behind: list[memoryview] = []
    told: dict[str, Any] = {"model_name": model, "model_version": version}
    if asked.id is not None:
        told["id"] = asked.id
    told["outputs"] = [
        _output(name, values[name], behind if binary else None)
        for name, binary in asked.outputs.items()
    ]
    text = encoded(told)
    return Reply([text, *behind], len(text) if behind else None)


def _output(name: str, values: Values, behind: list[memoryview] | None) -> dict[str, Any]:
    """An entry of the reply; its bytes are put `behind` where that is a list."""
    spec = Spec(name, dtypes.of(values.dtype), values.shape)
    if behind is None:
        return {**spec.described(), "data": tensors.to_json(values)}
    data = tensors.to_bytes(values)
    behind.append(data)
    return {**spec.described(), "parameters": {"binary_data_size": len(data)}}
