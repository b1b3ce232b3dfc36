"""`gnomon im2rec`: lists of the images in a folder, and record files packed from lists.

The options are those of MXNet's tool. `im2rec --list PREFIX ROOT` writes `PREFIX.lst`, lines
`number<TAB>label<TAB>path`; `im2rec PREFIX ROOT` packs every list that `PREFIX` names, or all whose
names begin with it, into `.rec` and `.idx` files beside them.
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import recordio
from gnomon.base import FileError, FormatError, GnomonError, MissingFileError
from gnomon.ground.bar import Bar
from gnomon.ground.files import read_bytes, replacing
from gnomon.io.ahead import Ahead, Future
from gnomon.recordio.header import opencv
from gnomon.recordio.listing import Row
from gnomon.recordio.listing import rows as rows_of

AHEAD = 8  # images under way for each thread


class ImageError(FormatError):
    """A file that cannot be read as an image."""


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the tool's options."""
    add = parser.add_argument
    add("prefix", help="of the lists and record files")
    add("root", type=Path, help="folder of the images")
    lists = parser.add_argument_group("lists")
    lists.add_argument("--list", action="store_true", help="write lists, pack nothing")
    lists.add_argument("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="of images")
    lists.add_argument("--chunks", type=int, default=1, help="number of lists")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="part for training")
    lists.add_argument("--test-ratio", type=float, default=0.0, help="part for tests")
    lists.add_argument("--recursive", action="store_true", help="a label for each folder below")
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="keep the order")
    records = parser.add_argument_group("records")
    records.add_argument("--pass-through", action="store_true", help="pack files as they are")
    records.add_argument("--resize", type=int, default=0, help="size of the shorter edge")
    records.add_argument("--center-crop", action="store_true", help="crop to a square")
    records.add_argument("--quality", type=int, default=95, help="JPEG 1-100, PNG 0-9")
    records.add_argument("--num-thread", type=int, default=os.cpu_count(), help="to encode with")
    records.add_argument("--color", type=int, default=1, choices=[-1, 0, 1], help="grey: 0")
    records.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"])
    records.add_argument("--pack-label", action="store_true", help="pack all labels of a line")


def main(given: argparse.Namespace) -> int:
    """Write lists or record files; gives the exit code.

    Raises:
        GnomonError: a folder or list that cannot be read, or none of the images.
    """
    if given.list:
        write_lists(given)
        return 0
    prefix = Path(given.prefix)
    if prefix.suffix == ".lst":
        lists = [prefix]
    else:
        lists = sorted(prefix.absolute().parent.glob(f"{prefix.name}*.lst"))
    if not lists:
        raise GnomonError(f"im2rec: there is no list {given.prefix}*.lst: write one by --list")
    for path in lists:
        count = pack(path, given)
        print(f"{path.with_suffix('.rec')}: {count} images", file=sys.stderr)
    return 0


# --- lists ----------------------------------------------------------------------------------


def write_lists(given: argparse.Namespace) -> None:
    """Write the lists of the images below the root."""
    rows = list(found(given.root, given.recursive, tuple(e.lower() for e in given.exts)))
    if not rows:
        raise GnomonError(f"im2rec: there are no images {' '.join(given.exts)} in {given.root}")
    if given.recursive:  # which label each folder has got
        for folder, label in {Path(r.path).parent: r.labels[0] for r in rows}.items():
            print(folder, int(label))
    if given.shuffle:
        random.Random(100).shuffle(rows)
    for name, part in parts(rows, given):
        text = "".join(f"{r.number}\t{r.labels[0]:f}\t{r.path}\n" for r in part)
        with replacing("im2rec", f"{given.prefix}{name}.lst") as stream:
            stream.write(text.encode())


def found(root: Path, recursive: bool, suffixes: tuple[str, ...]) -> Iterator[Row]:
    """The images in a folder; with `recursive` below it, labelled by their folders in order.

    A folder's own images come before those of the folders in it; links are followed.
    """
    if not root.is_dir():
        raise MissingFileError(f"im2rec: {str(root)!r} is no folder")
    number, label = 0, 0
    for folder, folders, names in os.walk(root, followlinks=True):
        here, inner = Path(folder).resolve(), sorted(folders) if recursive else []
        # a link to what it is in has no end
        folders[:] = [n for n in inner if not here.is_relative_to(Path(folder, n).resolve())]
        before = number
        for path in (Path(folder, name) for name in sorted(names)):
            if path.suffix.lower() in suffixes and path.is_file():
                yield Row(number, [float(label)], path.relative_to(root).as_posix())
                number += 1
        label += number > before


def parts(rows: Sequence[Row], given: argparse.Namespace) -> Iterator[tuple[str, Sequence[Row]]]:
    """Name and rows of each list: chunks, each cut into tests, training and validation."""
    size = -(-len(rows) // given.chunks)
    for chunk in range(given.chunks):
        own = rows[chunk * size : (chunk + 1) * size]
        name = f"_{chunk}" if given.chunks > 1 else ""
        tests, train = int(size * given.test_ratio), int(size * given.train_ratio)
        if given.train_ratio == 1:
            yield name, own
            continue
        if tests:
            yield f"{name}_test", own[:tests]
        if given.train_ratio + given.test_ratio < 1:
            yield f"{name}_val", own[tests + train :]
        yield f"{name}_train", own[tests : tests + train]


def read_list(path: Path) -> Iterator[Row]:
    """The rows of a list.

    Raises:
        FormatError: a line is not `number<TAB>labels<TAB>path`, with a label or several.
    """
    text = read_bytes("im2rec", path).decode()
    for row in rows_of(str(path), text):
        if not row.labels:
            raise FormatError(f"{path}: {row.path}: expected a label or several, got none")
        yield row


# --- records --------------------------------------------------------------------------------


def pack(path: Path, given: argparse.Namespace) -> int:
    """Pack the images of a list; nothing is left half-written. Gives how many there are.

    What cannot be read as an image is told and left out.
    """
    rows = list(read_list(path))
    target = path.with_suffix(".rec")
    remove_leftovers(target)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    index = target.with_name(f".{target.name}.{os.getpid()}.idx")
    try:
        with (
            Bar(len(rows), target.name) as bar,
            recordio.MXIndexedRecordIO(str(index), str(draft), "w") as out,
        ):
            made = in_order(rows, given)
            count = sum(entered(out, row.number, work, bar) for row, work in made)
        if not count:
            raise GnomonError(f"im2rec: no image of {str(path)!r} can be read")
        draft.replace(target)
        index.replace(target.with_suffix(".idx"))
    finally:
        for left in (draft, index):
            left.unlink(missing_ok=True)
    return count


def entered(out: Any, number: int, work: Future[bytes], bar: Bar) -> bool:
    """Whether a record was made, and then written."""
    made = None
    try:
        made = work.result()
    except (ImageError, FileError) as error:
        bar.say(f"{error}; left out")
    if made is not None:
        out.write_idx(number, made)
    bar.update()
    return made is not None


def remove_leftovers(target: Path) -> None:
    """Remove what processes left of `target` that were killed while they packed it."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*"):
        number = left.name.removeprefix(f".{target.name}.").removesuffix(".idx")
        if number.isdecimal() and not Path(f"/proc/{number}").exists():
            left.unlink(missing_ok=True)


def in_order(rows: Sequence[Row], given: argparse.Namespace) -> Iterator[tuple[Row, Future[bytes]]]:
    """Each row with the work that makes its record; threads are a little ahead."""
    threads = Ahead(given.num_thread)
    begun: deque[tuple[Row, Future[bytes]]] = deque()
    for row in rows:
        begun.append((row, threads.begin(Future(partial(record, row, given)))))
        if len(begun) > AHEAD * given.num_thread:
            yield begun.popleft()
    yield from begun


def record(row: Row, given: argparse.Namespace) -> bytes:
    """The record of an image.

    Raises:
        FileError: the file cannot be read.
        ImageError: it is no image.
    """
    path = given.root / row.path
    several = given.pack_label and len(row.labels) > 1  # else the first one, as in MXNet
    label: Any = np.array(row.labels, np.float32) if several else row.labels[0]
    header = recordio.IRHeader(0, label, row.number, 0)
    data = read_bytes("im2rec", path)
    if given.pass_through:
        return recordio.pack(header, data)
    cv2 = opencv("im2rec")
    image = cv2.imdecode(np.frombuffer(data, np.uint8), given.color) if data else None
    if image is None:
        raise ImageError(f"{str(path)!r} is no image")
    image = fitted(cv2, image, given)
    return recordio.pack_img(header, image, given.quality, given.encoding)


def fitted(cv2: Any, image: Any, given: argparse.Namespace) -> Any:
    """The image cropped to a square, and with the shorter edge, that are wanted."""
    h, w = image.shape[:2]
    if given.center_crop and h != w:
        side = min(h, w)
        y, x = (h - side) // 2, (w - side) // 2
        image = image[y : y + side, x : x + side]
        h = w = side
    if given.resize:
        size = given.resize
        to = (size, h * size // w) if h > w else (w * size // h, size)
        image = cv2.resize(image, to)
    return image
