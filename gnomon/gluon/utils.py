"""Utilities: batches over contexts, gradients clipped together, files fetched."""

from __future__ import annotations

import hashlib
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import FileError, ParamError, ShapeError, check_kind, complaint
from gnomon.context import Context
from gnomon.gluon.block.hooks import HookHandle
from gnomon.gluon.block.summary import _indent  # noqa: F401  MXNet's has it
from gnomon.gluon.parameter.shapes import shape_is_known
from gnomon.ground.arguments import checked
from gnomon.ground.files import opened, replacing
from gnomon.ops.infer import normal_axis

__all__ = [
    "HookHandle",
    "check_sha1",
    "clip_global_norm",
    "download",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
]

STORE = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


@checked
def split_data(
    data: Any, num_slice: int, batch_axis: int = 0, even_split: bool = True
) -> list[Any]:
    """`data` cut into `num_slice` parts along `batch_axis`.

    >>> from gnomon import nd
    >>> [x.shape for x in split_data(nd.ones((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]

    Along the first axis, parts are empty where there are fewer elements than parts.

    Raises:
        ShapeError: `num_slice` is below 1 or, with `even_split`, does not divide the elements.
    """
    check_kind("split_data", "data", data, (nd.NDArray, np.ndarray), "an array")
    size = data.shape[normal_axis("split_data", batch_axis, data.ndim)]
    if num_slice < 1:
        raise ShapeError(complaint("split_data", "num_slice", "a number above 0", num_slice))
    if even_split and size % num_slice:
        expected = f"a divisor of {size}, the size of axis {batch_axis}, or even_split=False"
        raise ShapeError(complaint("split_data", "num_slice", expected, num_slice))
    if num_slice == 1:
        return [data]
    least, larger = divmod(size, num_slice)
    ends = np.cumsum([least + (k < larger) for k in range(num_slice)]).tolist()
    starts = [0, *ends[:-1]]
    if batch_axis == 0:
        return [data[a:b] for a, b in zip(starts, ends, strict=True)]
    pairs = zip(starts, ends, strict=True)
    return [nd.slice_axis(data, axis=batch_axis, begin=a, end=b) for a, b in pairs]


@checked
def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[Any]:
    """`data`, an NDArray or what NumPy takes, cut into a part for each context, and put there.

    Raises:
        ShapeError: as `split_data`.
        ParamError: there are no contexts.
    """
    check_kind("split_and_load", "ctx_list", ctx_list, (list, tuple), "a list of Contexts")
    if not ctx_list:
        raise ParamError(complaint("split_and_load", "ctx_list", "at least one Context", "none"))
    for ctx in ctx_list:
        check_kind("split_and_load", "ctx_list", ctx, Context, "Contexts")
    array = data if isinstance(data, nd.NDArray) else nd.array(data, ctx=ctx_list[0])
    parts = split_data(array, len(ctx_list), batch_axis, even_split)
    return [x.as_in_context(ctx) for x, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays: Sequence[Any], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays, where they are, so that the norm of all together is at most `max_norm`.

    The norm before as a float; as an array, without waiting for it, if not `check_isfinite`.

    >>> from gnomon import nd
    >>> x = nd.array([3, 4])
    >>> clip_global_norm([x], 1.0)
    5.0
    >>> x.asnumpy().round(3)
    array([0.6, 0.8], dtype=float32)

    Raises:
        ParamError: there are no arrays.
    """
    check_kind("clip_global_norm", "arrays", arrays, (list, tuple), "a list of NDArrays")
    if not arrays:
        raise ParamError(complaint("clip_global_norm", "arrays", "at least one", 0))
    for array in arrays:
        check_kind("clip_global_norm", "arrays", array, nd.NDArray, "NDArrays")
    ctx = arrays[0].context
    squares = [_square_sum(x).as_in_context(ctx) for x in arrays]
    norm = nd.sqrt(nd.add_n(*squares))
    if check_isfinite and not np.isfinite(norm.asscalar()):
        text = "clip_global_norm: there are nan or inf among the elements, so there are afterwards"
        warnings.warn(text, stacklevel=2)
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        factor = scale.as_in_context(array.context)
        array[:] = array * (factor if factor.dtype == array.dtype else factor.astype(array.dtype))
    return float(norm.asscalar()) if check_isfinite else norm


def _square_sum(array: Any) -> Any:
    """The sum of the squares of all elements, in single precision at least."""
    wide = array if array.dtype in (np.float32, np.float64) else array.astype("float32")
    found = nd.sum(nd.square(wide.reshape((-1,)))).reshape((1,))
    return found if found.dtype == np.float32 else found.astype("float32")


def _get_repo_url() -> str:
    """Where MXNet keeps its data sets and models: MXNET_GLUON_REPO, or its own store."""
    found = os.environ.get("MXNET_GLUON_REPO", STORE)
    return found if found.endswith("/") else found + "/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """The address of a file there."""
    return f"{_get_repo_url()}{namespace}/{filename}"


def check_sha1(filename: str | os.PathLike[str], sha1_hash: str) -> bool:
    """Whether the file has this SHA-1 hash."""
    found = hashlib.sha1()
    with opened("check_sha1", filename, "rb") as stream:
        while part := stream.read(1 << 20):
            found.update(part)
    return found.hexdigest() == sha1_hash


def replace_file(src: str, dst: str) -> None:
    """Have the file `src` take the place of `dst`, at once."""
    Path(src).replace(dst)


def download(
    url: str,
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Fetch a file, unless it is there with the right hash; where it lies now.

    `path` is the file's place, or a directory for it, by default the current one.

    Raises:
        FileError: it cannot be fetched, after `retries` more attempts, or has another hash;
            nothing stands under its name then.
        ParamError: the URL has no file name, and `path` has none.
    """
    target = _target(url, path)
    if target.exists() and not overwrite and (not sha1_hash or check_sha1(target, sha1_hash)):
        return str(target)
    if not verify_ssl:
        text = f"download: the certificate of {url} is not verified: verify_ssl=False"
        warnings.warn(text, stacklevel=2)
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in range(max(int(retries), 0), -1, -1):
        try:
            _fetch(url, target, sha1_hash, verify_ssl)
            return str(target)
        except (OSError, ValueError) as error:
            if not left:
                raise FileError(
                    f"download: cannot fetch {url}: {error}; is there a network? A file from "
                    f"elsewhere at {target} is taken as it is"
                ) from error
    return str(target)


def _target(url: str, path: str | None) -> Path:
    """Where the file is to lie."""
    name = urllib.parse.urlsplit(url).path.rpartition("/")[2]
    if path is not None and not Path(path).expanduser().is_dir():
        return Path(path).expanduser()
    if not name:
        expected = "a URL with a file name, or a path with one"
        raise ParamError(complaint("download", "url", expected, repr(url)))
    return Path(path or ".").expanduser() / name


def _fetch(url: str, target: Path, sha1_hash: str | None, verify: bool) -> None:
    """Fetch the file once; ValueError where it has another hash."""
    context = None if verify else ssl._create_unverified_context()
    with urllib.request.urlopen(url, context=context) as source:
        content = source.read()
    found = hashlib.sha1(content).hexdigest()
    if sha1_hash and found != sha1_hash:
        raise ValueError(f"its SHA-1 hash is {found}, expected {sha1_hash}")
    with replacing("download", target) as stream:
        stream.write(content)
