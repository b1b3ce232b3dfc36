"""Files with the parameters of known networks, in a local folder: nothing is fetched."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gnomon.base import FormatError, MissingFileError, UnknownNameError, nearest
from gnomon.gluon.utils import check_sha1, download, replace_file

__all__ = [
    "check_sha1",
    "download",
    "get_model_file",
    "named",
    "purge",
    "replace_file",
    "short_hash",
    "trained",
]

Net = TypeVar("Net")

ROOT = str(Path("~") / ".mxnet" / "models")
# name of a network -> the SHA-1 of MXNet's file of its parameters, or how it begins, as in the
# file's name; libraries enter those of their files
_model_sha1: dict[str, str] = dict(
    row.split()
    for row in """
    alexnet 44335d1f
    densenet121 f27dbf2d
    densenet161 b6c8a957
    densenet169 2603f878
    densenet201 1cdbc116
    inceptionv3 ed47ec45
    mobilenet0.25 9f83e440
    mobilenet0.5 8e9d539c
    mobilenet0.75 529b2c7f
    mobilenet1.0 6b8c5106
    mobilenetv2_0.25 ae8f9392
    mobilenetv2_0.5 aabd26cd
    mobilenetv2_0.75 e2be7b72
    mobilenetv2_1.0 36da4ff1
    resnet18_v1 a0666292
    resnet18_v2 a81db45f
    resnet34_v1 48216ba9
    resnet34_v2 9d6b80bb
    resnet50_v1 0aee57f9
    resnet50_v2 ecdde353
    resnet101_v1 d988c13d
    resnet101_v2 18e93e4f
    resnet152_v1 671c637a
    resnet152_v2 f2695542
    squeezenet1.0 264ba497
    squeezenet1.1 33ba0f93
    vgg11 dd221b16
    vgg11_bn ee79a809
    vgg13 6bc5de58
    vgg13_bn 7d97a06c
    vgg16 e660d456
    vgg16_bn 7f01cf05
    vgg19 ad2f660d
    vgg19_bn f360b758
    """.strip().splitlines()
)


def short_hash(name: str) -> str:
    """How the SHA-1 of MXNet's file of the network called `name` begins: eight digits.

    >>> short_hash("resnet18_v1")
    'a0666292'

    Raises:
        UnknownNameError: there is no such network.
    """
    if name not in _model_sha1:
        near = nearest(name, _model_sha1)
        raise UnknownNameError(f"short_hash: there is no network {name!r}{near}")
    return _model_sha1[name][:8]


def named(name: str, make: Callable[..., Any], *args: Any, **given: Any) -> Callable[..., Any]:
    """The function called `name` that makes one network of the family of `make`."""

    @functools.wraps(make)
    def made(**kwargs: Any) -> Any:
        return make(*args, **{**given, **kwargs})

    del made.__wrapped__  # type: ignore[attr-defined]  # its signature is not theirs
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"The network {name}; keyword arguments as for `{make.__name__}`."
    return made


def get_model_file(name: str, root: str = ROOT) -> str:
    """The path of the parameters of the network called `name` in the folder `root`.

    The file is `name.params`, or `name-0a1b2c3d.params` as MXNet names what it fetched.

    Raises:
        MissingFileError: there is none.
    """
    folder = Path(root).expanduser()
    own = folder / f"{name}.params"
    if own.is_file():
        return str(own)
    hashed = re.compile(re.escape(name) + r"-[0-9a-f]{8}\.params")
    found = sorted(p for p in folder.glob(f"{name}-*.params") if hashed.fullmatch(p.name))
    if found:
        return str(found[0])
    raise MissingFileError(
        f"model_zoo: there are no parameters of {name!r} in {folder}: put {name}.params, or "
        f"MXNet's {name}-xxxxxxxx.params, there; nothing is fetched"
    )


def trained(net: Net, pretrained: bool, name: str, root: str, ctx: Any) -> Net:
    """`net`, if it is to be `pretrained` with the parameters in the file of `name`.

    Raises:
        MissingFileError: there is none.
        FormatError: it holds others.
    """
    if not pretrained:
        return net
    path = get_model_file(name, root)
    try:
        net.load_parameters(path, ctx=ctx)
    except Exception as error:
        raise FormatError(f"model_zoo: {path} does not hold the parameters of {name}") from error
    return net


def purge(root: str = ROOT) -> None:
    """Delete all files of parameters in the folder `root`."""
    for path in Path(root).expanduser().glob("*.params"):
        path.unlink()
