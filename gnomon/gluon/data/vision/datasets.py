"""Data sets of images in local files; nothing is fetched."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import FormatError, MissingFileError, ParamError, complaint, shown
from gnomon.gluon.data.dataset import Dataset, RecordFileDataset, Transform, _DownloadedDataset
from gnomon.gluon.utils import check_sha1, download  # noqa: F401  MXNet's has it
from gnomon.ground.files import read_bytes
from gnomon.io.source import read
from gnomon.recordio import IRHeader, pack, unpack_img

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageListDataset",
    "ImageRecordDataset",
]

ENDINGS = (".jpg", ".jpeg", ".png")
HOME = Path("~") / ".mxnet" / "datasets"


def _found(data_set: Any, names: Sequence[str], *folders: str) -> list[Path]:
    """The files called `names`, or with `.gz` behind, in its folder or one of `folders` in it.

    Raises:
        MissingFileError: files are missing; says which, and where they are looked for.
    """
    root = Path(data_set._root)
    found, missing = list[Path](), []
    for name in names:
        places = (root / f / n for f in ("", *folders) for n in (name, f"{name}.gz"))
        path = next((p for p in places if p.is_file()), None)
        if path is None:
            missing.append(name)
        else:
            found.append(path)
    if missing:
        raise MissingFileError(
            f"{type(data_set).__name__}: {', '.join(missing)} (or with .gz) not found in "
            f"{root}: put the files there; nothing is fetched"
        )
    return found


class MNIST(_DownloadedDataset):
    """Handwritten digits, from the four files of MNIST, packed by gzip or not.

    A sample is an image (height, width, channels) as an NDArray of uint8, and its label as an
    int32; or what `transform(image, label)` makes of them.

    Args:
        root: the folder with the files.
        train: the 60,000 images for training, else the 10,000 for tests.
        transform: function of (image, label).

    Raises:
        MissingFileError: files are missing; says which, and where they are looked for.
        FormatError: a file is not what its name says.
    """

    _home = "mnist"

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        train: bool = True,
        transform: Transform | None = None,
    ) -> None:
        self._train = train
        super().__init__(HOME / self._home if root is None else root, transform)

    def _get_data(self) -> None:
        part = "train" if self._train else "t10k"
        names = [f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"]
        images, labels = (_idx(path) for path in _found(self, names))
        if images.ndim != 3 or len(images) != len(labels):
            got = f"{images.shape} images, {labels.shape} labels"
            raise FormatError(f"{self._root}: expected an image for each label, got {got}")
        self._data = nd.array(images[..., None], dtype="uint8")
        self._label = labels.astype(np.int32)


def _idx(path: Path) -> np.ndarray:
    """The array of bytes in a file of the IDX format."""
    data = read("MNIST", path)
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise FormatError(
            f"{path}: expected an IDX file of bytes, got one that begins {data[:4]!r}"
        )
    begin = 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data[4:begin], ">u4").tolist())
    if len(data) - begin != int(np.prod(shape)):
        raise FormatError(f"{path}: expected {shape} bytes, got {len(data) - begin}")
    return np.frombuffer(data, np.uint8, offset=begin).reshape(shape)


class FashionMNIST(MNIST):
    """Clothes, in files of the same names as MNIST's."""

    _home = "fashion-mnist"


class CIFAR10(_DownloadedDataset):
    """Photographs 32 wide in ten classes, from the files of its binary version.

    Samples and errors are as those of `MNIST`.

    Args:
        root: the folder with the files, or with their folder `cifar-10-batches-bin`.
        train: the 50,000 images for training, else the 10,000 for tests.
        transform: function of (image, label).
    """

    _home, _folder, _labels = "cifar10", "cifar-10-batches-bin", 1

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        train: bool = True,
        transform: Transform | None = None,
    ) -> None:
        self._train, self._column = train, 0
        super().__init__(HOME / self._home if root is None else root, transform)

    def _names(self) -> list[str]:
        return [f"data_batch_{k}.bin" for k in range(1, 6)] if self._train else ["test_batch.bin"]

    def _get_data(self) -> None:
        width = 3072 + self._labels
        rows = []
        for path in _found(self, self._names(), self._folder):
            data = np.frombuffer(read(type(self).__name__, path), np.uint8)
            if data.size % width:
                raise FormatError(f"{path}: expected rows of {width} bytes, got {data.size} bytes")
            rows.append(data.reshape(-1, width))
        whole = np.concatenate(rows)
        images = whole[:, self._labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self._data = nd.array(images, dtype="uint8")
        self._label = whole[:, self._column].astype(np.int32)


class CIFAR100(CIFAR10):
    """Photographs 32 wide in a hundred classes, or the twenty groups of them.

    Args:
        root, train, transform: as for `CIFAR10`; the folder is `cifar-100-binary`.
        fine_label: the class, else its group.
    """

    _home, _folder, _labels = "cifar100", "cifar-100-binary", 2

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Transform | None = None,
    ) -> None:
        self._fine = fine_label
        super().__init__(root, train, transform)

    def _names(self) -> list[str]:
        return ["train.bin" if self._train else "test.bin"]

    def _get_data(self) -> None:
        self._column = int(self._fine)
        super()._get_data()


def decoded(data: bytes, flag: int) -> nd.NDArray:
    """An encoded image as (height, width, channels): red, green, blue, or gray for `flag` 0.

    Raises:
        FormatError: it is none.
    """
    _, image = unpack_img(pack(IRHeader(0, 0.0, 0, 0), data), flag)
    image = image[:, :, None] if image.ndim == 2 else image[:, :, ::-1]
    return nd.array(np.ascontiguousarray(image), dtype="uint8")


class ImageRecordDataset(RecordFileDataset):
    """Images and labels in a RecordIO file.

    Args:
        filename: the file; its index lies beside it.
        flag: 1 for colour, 0 for gray.
        transform: function of (image, label).
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        flag: int = 1,
        transform: Transform | None = None,
    ) -> None:
        super().__init__(filename)
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx: int) -> Any:
        header, image = unpack_img(super().__getitem__(idx), self._flag)
        image = image[:, :, None] if image.ndim == 2 else image[:, :, ::-1]
        pair = nd.array(np.ascontiguousarray(image), dtype="uint8"), header.label
        return pair if self._transform is None else self._transform(*pair)


class ImageFolderDataset(Dataset):
    """Images in folders, one folder a class; `synsets` are the classes, in alphabetical order.

    Args:
        root: the folder of the folders.
        flag: 1 for colour, 0 for gray.
        transform: function of (image, label).
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        flag: int = 1,
        transform: Transform | None = None,
    ) -> None:
        self._root, self._flag, self._transform = str(Path(root).expanduser()), flag, transform
        self._list_images(self._root)

    def _list_images(self, root: str) -> None:
        """Make `synsets` and `items`, pairs of path and label; subclasses have their own rules."""
        if not Path(root).is_dir():
            raise MissingFileError(f"ImageFolderDataset: there is no folder {root}")
        folders = sorted(p for p in Path(root).iterdir() if p.is_dir())
        self.synsets = [folder.name for folder in folders]
        self.items: list[tuple[str, int]] = []
        for label, folder in enumerate(folders):
            for path in sorted(folder.iterdir()):
                if path.suffix.lower() in ENDINGS:
                    self.items.append((str(path), label))
                else:
                    logging.warning("ImageFolderDataset: %s is passed over: no %s", path, ENDINGS)

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        pair = _image(path, self._flag), label
        return pair if self._transform is None else self._transform(*pair)

    def __len__(self) -> int:
        return len(self.items)


class ImageListDataset(Dataset):
    """Images of a list: rows of labels and a path.

    Args:
        root: the folder that paths start from.
        imglist: a file of lines `number<TAB>label<TAB>...<TAB>path`, as `im2rec` makes them, or a
            list of rows `[label, ..., path]`.
        flag: 1 for colour, 0 for gray.

    A label is an array of its numbers.
    """

    def __init__(
        self, root: str | os.PathLike[str] = ".", imglist: Any = None, flag: int = 1
    ) -> None:
        self._root, self._flag = Path(root).expanduser(), flag
        if isinstance(imglist, (str, os.PathLike)):
            lines = read_bytes("ImageListDataset", imglist).decode().splitlines()
            rows: Any = [line.split("\t")[1:] for line in lines if line.strip()]
        elif isinstance(imglist, (list, tuple)):
            rows = imglist
        else:
            expected, got = "a file, or a list of rows", repr(imglist)
            raise ParamError(complaint("ImageListDataset", "imglist", expected, got))
        self.items = [self._row(number, row) for number, row in enumerate(rows)]

    def _row(self, number: int, row: Any) -> tuple[str, np.ndarray]:
        try:
            *labels, path = row
            numbers = np.array(labels, np.float32).reshape(-1)
        except (TypeError, ValueError):
            numbers = np.zeros(0, np.float32)
        if not numbers.size:
            expected = "labels and a path"
            where = f"row {number} of imglist"
            raise FormatError(complaint("ImageListDataset", where, expected, shown(row)))
        return str(self._root / str(path)), numbers

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        return _image(path, self._flag), label

    def __len__(self) -> int:
        return len(self.items)


def _image(path: str, flag: int) -> nd.NDArray:
    try:
        return decoded(read_bytes("image data set", path), flag)
    except FormatError as error:
        raise FormatError(f"{path}: not an image: {error}") from error
