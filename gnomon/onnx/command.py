"""The command `gnomon onnx`: networks of MXNet's files as ONNX files, and back."""

from __future__ import annotations

import argparse

from gnomon.module.checkpoint import save_checkpoint
from gnomon.onnx.export import export_model
from gnomon.onnx.importer import import_model
from gnomon.shape import SHAPES_OPTION, named_shape


def options(command: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    actions = command.add_subparsers(title="actions", required=True, metavar="ACTION")
    out = actions.add_parser("export", help="write a network as an ONNX file")
    out.add_argument("symbol", metavar="SYMBOL.json")
    out.add_argument("params", metavar="FILE.params")
    out.add_argument("--shapes", required=True, **SHAPES_OPTION)
    out.add_argument("-o", dest="out", required=True, metavar="FILE.onnx")
    out.add_argument("--dynamic", action="store_true", help="leave the batch's size open")
    out.set_defaults(action=_export)
    back = actions.add_parser("import", help="read an ONNX file into a symbol and parameters")
    back.add_argument("model", metavar="FILE.onnx")
    back.add_argument("--prefix", required=True, help="PREFIX-symbol.json, PREFIX-0000.params")
    back.set_defaults(action=_import)


def _export(given: argparse.Namespace) -> int:
    shapes = dict(named_shape("onnx export", word) for word in given.shapes)
    how = {"onnx_file_path": given.out, "dynamic": given.dynamic}
    print(export_model(given.symbol, given.params, shapes, **how))
    return 0


def _import(given: argparse.Namespace) -> int:
    save_checkpoint(given.prefix, 0, *import_model(given.model))
    print(f"{given.prefix}-symbol.json {given.prefix}-0000.params")
    return 0


def main(given: argparse.Namespace) -> int:
    """Run the command; its exit code."""
    code: int = given.action(given)
    return code
