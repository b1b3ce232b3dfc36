"""Data sets in local files: what is not there is told, nothing is fetched in silence."""

from __future__ import annotations

import bz2
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gnomon.base import GnomonError, MissingFileError, data_dir
from gnomon.ground.files import read_bytes, replacing
from gnomon.io import NDArrayIter
from gnomon.io.mnist import read_idx

MNIST = {
    "train_data": "train-images-idx3-ubyte",
    "train_label": "train-labels-idx1-ubyte",
    "test_data": "t10k-images-idx3-ubyte",
    "test_label": "t10k-labels-idx1-ubyte",
}


def download(
    url: str,
    fname: str | None = None,
    dirname: str | None = None,
    overwrite: bool = False,
    retries: int = 5,
) -> str:
    """The path of a local copy of `url`, fetched unless it is there; `file://` works offline.

    Raises:
        GnomonError: it cannot be fetched; it says how to help.
    """
    path = Path(dirname or ".") / (fname or url.rsplit("/", maxsplit=1)[-1])
    if path.exists() and not overwrite:
        return str(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    problem: Exception | None = None
    for _ in range(max(1, retries)):
        try:
            with urllib.request.urlopen(url) as source:
                content = source.read()
            with replacing("download", path) as target:
                target.write(content)
            return str(path)
        except (OSError, urllib.error.URLError, ValueError) as error:
            problem = error
    raise GnomonError(
        f"download: cannot fetch {url} ({problem}); put the file at {path.absolute()} by hand"
    ) from problem


def get_mnist(path: str | None = None) -> dict[str, Any]:
    """MNIST as arrays: pictures (n, 1, 28, 28) from 0 to 1 in float32, labels (n,) of int64.

    The four files of the original, with .gz or without, stand in `path`, `mnist` in
    `mx.base.data_dir()` or the current folder.

    Raises:
        GnomonError: they are in none of these.
    """
    folders = [Path(path)] if path else [Path(data_dir()) / "mnist", Path("data"), Path()]
    for folder in folders:
        files = {k: _with_gz(folder / name) for k, name in MNIST.items()}
        if all(files.values()):
            return {k: _mnist_part(file) for k, file in files.items()}  # type: ignore[arg-type]
    where = " or ".join(str(f.absolute()) for f in folders)
    raise GnomonError(f"get_mnist: expected the files {', '.join(MNIST.values())} in {where}")


def _with_gz(path: Path) -> Path | None:
    return next((p for p in (path, path.with_name(path.name + ".gz")) if p.exists()), None)


def _mnist_part(path: Path) -> np.ndarray[Any, Any]:
    values = read_idx(str(path))
    if values.ndim == 1:
        return values.astype(np.int64)
    return (values[:, None] / 255).astype(np.float32)


def get_mnist_ubyte() -> None:
    """As `get_mnist`: the files are there, or an error says where they belong."""
    get_mnist()


def get_mnist_iterator(
    batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1, part_index: int = 0
) -> tuple[Any, Any]:
    """Iterators of the training and the test part of MNIST, one of `num_parts` parts of each.

    `input_shape` is (784,) for flat pictures, or (1, 28, 28).
    """
    data = get_mnist()
    parts = []
    for kind in ("train", "test"):
        pictures = data[f"{kind}_data"][part_index::num_parts]
        labels = data[f"{kind}_label"][part_index::num_parts].astype(np.float32)
        pictures = pictures.reshape(len(pictures), *input_shape)
        parts.append(NDArrayIter(pictures, labels, batch_size, shuffle=kind == "train"))
    return parts[0], parts[1]


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Fetch a zip archive into `data_dir`, unless it is there, and unpack it."""
    with zipfile.ZipFile(download(url, data_origin_name, data_dir)) as archive:
        archive.extractall(data_dir)


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Fetch a bz2 file into `data_dir`, unless it is unpacked there, and unpack it."""
    target = Path(data_dir) / data_name
    if not target.exists():
        packed = Path(download(url, data_origin_name, data_dir))
        with replacing("get_data", target) as out:
            out.write(bz2.decompress(read_bytes("get_data", packed)))


def get_cifar10() -> None:
    """As `get_mnist_ubyte`, for `data/cifar/train.rec` and `test.rec` below the current folder."""
    _demand("get_cifar10", Path("data/cifar/train.rec"), Path("data/cifar/test.rec"))


def get_mnist_pkl() -> None:
    """As `get_mnist_ubyte`, for `data/mnist.pkl.gz` below the current folder."""
    _demand("get_mnist_pkl", Path("data/mnist.pkl.gz"))


def download_model(model_name: str, dst_dir: str = "./", meta_info: Any = None) -> tuple[str, int]:
    """The prefix and the epoch of a model's files in `dst_dir`, which are there already.

    Raises:
        GnomonError: they are not.
    """
    prefix = Path(dst_dir) / model_name
    _demand("download_model", Path(f"{prefix}-symbol.json"), Path(f"{prefix}-0000.params"))
    return str(prefix), 0


def _demand(where: str, *paths: Path) -> None:
    missing = [str(p.absolute()) for p in paths if not p.exists()]
    if missing:
        raise MissingFileError(
            f"{where}: nothing is loaded from the network: put {missing[0]} there"
        )
