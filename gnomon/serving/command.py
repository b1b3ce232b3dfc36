"""`gnomon serve NAME=SYMBOL.json,PARAMS ...`: models over HTTP until the process is told to end."""

from __future__ import annotations

import argparse
import signal
import threading
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.base import Later, ParamError, complaint
from gnomon.serving.folder import read_folder
from gnomon.serving.limits import Limits
from gnomon.serving.model import Model, Options
from gnomon.shape import named_shape

if TYPE_CHECKING:
    from gnomon.serving import server
else:  # it needs aiohttp, which telling of the arguments does not
    server = Later("gnomon.serving.server")


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add, limits, model = parser.add_argument, Limits(), Options()
    add("models", nargs="*", metavar="NAME=SYMBOL.json,PARAMS", help="a model and its name")
    add("--models", dest="folder", type=Path, metavar="DIR", help="a folder with NAME.toml files")
    add(
        "--shapes",
        action="append",
        default=[],
        metavar="[MODEL:]NAME:SIZExSIZE",
        help="of one item of inputs, as data:3x224x224; -1 is any size; of all models that have it",
    )
    add("--no-batch", action="store_true", help="requests are not joined; --shapes is all sizes")
    add("--host", default="127.0.0.1", help="default: %(default)s")
    add("--port", type=int, default=8080, help="0: any that is free; default: %(default)s")
    for name, doc in (
        ("max-batch", "items computed together at most"),
        ("max-delay-ms", "how long a request waits for others"),
        ("workers", "batches of a model computed at the same time"),
        ("queue-limit", "requests of a model that wait at most"),
    ):
        _number(parser, name, model, doc)
    for name, doc in (
        ("max-request-bytes", "of a body"),
        ("max-connections", "that are open at most"),
        ("timeout-s", "for a body, a result, and sending it, each"),
        ("idle-s", "for the head of a request"),
        ("shutdown-s", "for what is under way when the server ends"),
    ):
        _number(parser, name, limits, doc)


def _number(parser: argparse.ArgumentParser, name: str, defaults: object, doc: str) -> None:
    default = getattr(defaults, name.replace("-", "_"))
    help = f"{doc}; default: %(default)s"
    parser.add_argument(f"--{name}", type=type(default), default=default, metavar="N", help=help)


def main(given: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; gives the exit code.

    Raises:
        GnomonError: a model cannot be loaded, or the address cannot be had.
    """
    own = {"batch": not given.no_batch, **_fields(Options, given)}
    models = {} if given.folder is None else read_folder(given.folder, own)
    named = [named_shape("serve", word, of_items=True) for word in given.shapes]
    shapes = [(place.rpartition(":"), shape) for place, shape in named]
    for text in given.models:
        name, _, files = text.partition("=")
        symbol, comma, params = files.partition(",")
        if not name or not comma:
            raise ParamError(complaint("serve", "model", "NAME=SYMBOL.json,PARAMS", repr(text)))
        inputs = {i: shape for (model, _, i), shape in shapes if model in ("", name)}
        models[name] = Model.load(symbol, params, inputs, **own)
    if not models:
        expected = "NAME=SYMBOL.json,PARAMS ..., or --models DIR"
        raise ParamError(complaint("serve", "models", expected, "none"))
    return serve(server.Server(models, given.host, given.port, **_fields(Limits, given)))


def _fields(kind: type[Options | Limits], given: argparse.Namespace) -> dict[str, Any]:
    """The arguments that are fields of `kind`."""
    return {f.name: getattr(given, f.name) for f in fields(kind) if f.name in given}


def serve(site: server.Server) -> int:
    """Run a server until SIGINT or SIGTERM, which a second one does not wait for."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        site.start()
        print(f"serving at {site.url}", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        print("stopping", flush=True)
    finally:
        site.stop()
    return 0
