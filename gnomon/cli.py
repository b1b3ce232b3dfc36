"""The command `gnomon`: a demonstration, programs written for MXNet, facts about the machine.

Exit codes: 0 done, 1 failed (the reason goes to stderr), 2 wrong arguments, 130 interrupted, 141
output into a pipe that is closed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon import __version__
from gnomon.base import GnomonError, Later
from gnomon.shape import SHAPES_OPTION

if TYPE_CHECKING:
    import json

    from gnomon import run
    from gnomon.commands import demo, doctor, im2rec, inspection, warm
    from gnomon.launch import command as launch
    from gnomon.onnx import command as onnx
    from gnomon.serving import command as serving
else:  # a command imports what it needs alone
    json = Later("json")
    demo, doctor = Later("gnomon.commands.demo"), Later("gnomon.commands.doctor")
    im2rec, run = Later("gnomon.commands.im2rec"), Later("gnomon.run")
    launch, onnx = Later("gnomon.launch.command"), Later("gnomon.onnx.command")
    inspection, warm = Later("gnomon.commands.inspection"), Later("gnomon.commands.warm")
    serving = Later("gnomon.serving.command")


# command -> its module, which has `options(parser)` and `main(options)`, and what it does
MODULES: dict[str, tuple[Any, str]] = {
    "im2rec": (im2rec, "list the images of a folder, pack record files"),
    "launch": (launch, "start a program in several processes, by MPI"),
    "inspect": (inspection, "tell what a model is, and what it needs here"),
    "serve": (serving, "answer requests for models over HTTP"),
    "onnx": (onnx, "write a network as an ONNX file, or read one"),
}


def positive(text: str) -> int:
    """A number of at least 1, for argparse.

    >>> positive("12")
    12
    """
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return number


def _demo(options: argparse.Namespace) -> int:
    if options.check is None:
        folder = options.out or demo.default_folder()
        return demo.train(
            options.epochs, options.batch_size, options.seed, folder, time.process_time()
        )
    prefix, epoch = options.check
    correct = demo.check(prefix, positive(epoch), options.batch_size)
    if options.json:
        print(json.dumps({"correct": correct, "of": demo.HELD_OUT}))
    else:
        print(f"held out {correct / demo.HELD_OUT:.2%} ({correct} of {demo.HELD_OUT})")
    return 0


def _run(options: argparse.Namespace) -> int:
    start = run.module if options.module else run.script
    return start(options.program, options.arguments)


def _doctor(_: argparse.Namespace) -> int:
    return doctor.examine()


def _warm(options: argparse.Namespace) -> int:
    return warm.main(options)


def _cache_options(cache: argparse.ArgumentParser) -> None:
    """Declare the arguments of `gnomon cache`."""
    actions = cache.add_subparsers(title="actions", required=True, metavar="ACTION")
    warming = actions.add_parser("warm", help="compile what a network needs, or typical work")
    model = warming.add_argument_group("for a network of its own, in place of typical work")
    model.add_argument("model", type=Path, nargs="?", metavar="SYMBOL.json", help="a saved symbol")
    model.add_argument("--shapes", default=[], **SHAPES_OPTION)
    model.add_argument("--train", action="store_true", help="its gradients as well")
    warming.set_defaults(run=_warm)


def _run_options(commands: Any) -> None:
    """Declare `gnomon run` and its arguments."""
    program = commands.add_parser(
        "run",
        usage="%(prog)s [-h] SCRIPT [ARGUMENT ...]\n       %(prog)s [-h] -m MODULE [ARGUMENT ...]",
        help="run a program written for MXNet: `import mxnet` gets gnomon",
    )
    program.add_argument("-m", dest="module", action="store_true", help="run a module by its name")
    program.add_argument("program", metavar="SCRIPT", help="a file, or a module's name with -m")
    own = program.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="the program's own"
    )
    own.required = False
    program.set_defaults(run=_run)


def parser(command: str = "") -> argparse.ArgumentParser:
    """The arguments of all commands, and every option of `command`."""
    top = argparse.ArgumentParser(prog="gnomon", description=__doc__.splitlines()[0])
    top.add_argument("--version", action="version", version=f"gnomon {__version__}")
    commands = top.add_subparsers(title="commands", prog=top.prog, required=True, metavar="COMMAND")

    train = commands.add_parser("demo", help="train a LeNet on real handwritten digits")
    train.add_argument("--epochs", type=positive, default=12, help="default: %(default)s")
    train.add_argument("--batch-size", type=positive, default=30, help="default: %(default)s")
    train.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    train.add_argument(
        "--out", type=Path, metavar="DIR", help="checkpoint's folder; default: in the user's cache"
    )
    train.add_argument(
        "--check",
        nargs=2,
        metavar=("PREFIX", "EPOCH"),
        help="only load a checkpoint and count what it gets right",
    )
    train.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    train.set_defaults(run=_demo)

    _run_options(commands)
    for name, (module, does) in MODULES.items():
        its = commands.add_parser(name, help=does)
        its.set_defaults(run=lambda options, module=module: module.main(options))
        if command == name:  # else its module is not imported
            module.options(its)

    _cache_options(commands.add_parser("cache", help="prepare the kernels that are kept on disk"))
    examine = commands.add_parser("doctor", help="tell what this machine offers and lacks")
    examine.set_defaults(run=_doctor)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit code."""
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        options = parser(*given[:1]).parse_args(given)
        code: int = options.run(options)
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:  # who read the output, as `head`, has seen enough
        with contextlib.suppress(OSError):
            sys.stdout.close()  # else the end of the process would try once more
        return 141  # what a shell gives a program that ends so
    except (GnomonError, OSError, argparse.ArgumentTypeError) as error:
        print(f"gnomon: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gnomon: interrupted", file=sys.stderr)
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
