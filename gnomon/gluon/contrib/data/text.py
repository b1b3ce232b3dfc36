"""Language model data sets in local files; nothing is fetched."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import FormatError, MissingFileError, ParamError, ShapeError, complaint
from gnomon.contrib.text.vocab import Vocabulary
from gnomon.gluon.data.dataset import Dataset
from gnomon.gluon.utils import check_sha1, download  # noqa: F401  MXNet's has it
from gnomon.ground.files import access, read_bytes

__all__ = ["WikiText2", "WikiText103"]

HOME = Path("~") / ".mxnet" / "datasets"
END = "<eos>"
PARTS = {"train": "train", "validation": "valid", "test": "test"}


class _WikiText(Dataset):
    """Sequences of words of one part of a text, each with the words that follow."""

    _name: str

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        segment: str = "train",
        vocab: Any = None,
        seq_len: int = 35,
    ) -> None:
        where = type(self).__name__
        if segment not in PARTS:
            raise ParamError(complaint(where, "segment", f"one of {list(PARTS)}", repr(segment)))
        if seq_len < 1:
            raise ParamError(complaint(where, "seq_len", "at least 1", seq_len))
        folder = Path(HOME / self._name if root is None else root).expanduser()
        lines = [line.split() for line in self._text(folder, segment).splitlines()]
        words = [[*line, END] for line in lines if line]
        self._counter = Counter(word for line in lines for word in line)
        if vocab is None:
            vocab = Vocabulary(self._counter, reserved_tokens=[END])
        self._vocab = vocab
        numbers = np.int32(vocab.to_indices([word for line in words for word in line]))
        count = (len(numbers) - 1) // seq_len
        if count < 1:
            expected = f"at least {seq_len + 1} words, for one sequence and its label"
            raise ShapeError(complaint(where, "seq_len", expected, len(numbers)))
        shape = count, seq_len
        self._data, self._label = (
            nd.array(part[: count * seq_len].reshape(shape), dtype="int32")
            for part in (numbers, numbers[1:])
        )

    def _text(self, folder: Path, segment: str) -> str:
        """The text of a part, from its file or from the archive."""
        name = f"wiki.{PARTS[segment]}.tokens"
        places = [folder / name, folder / self._name / name]
        archive = folder / f"{self._name}-v1.zip"
        path = next((p for p in places if p.is_file()), archive)
        try:
            if path is not archive:
                return read_bytes(type(self).__name__, path).decode()
            with access(type(self).__name__, archive), zipfile.ZipFile(archive) as packed:
                return packed.read(f"{self._name}/{name}").decode()
        except MissingFileError as error:
            raise MissingFileError(
                f"{type(self).__name__}: neither {name} nor {archive.name} found in {folder}: "
                "put the files there; nothing is fetched"
            ) from error
        except (KeyError, ValueError, zipfile.BadZipFile) as error:
            raise FormatError(f"{path}: expected {name}, text in UTF-8: {error}") from error

    @property
    def vocabulary(self) -> Any:
        """The numbers of words."""
        return self._vocab

    @property
    def frequencies(self) -> Counter[str]:
        """How often each word is in this part."""
        return self._counter

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._data)


class WikiText2(_WikiText):
    """Sequences of words of the WikiText-2 text, each with the words that follow as its label.

    Two million words of Wikipedia (Merity et al., arXiv:1609.07843).

    Args:
        root: the folder with `wiki.train.tokens` and its like, or with the archive of them.
        segment: "train", "validation" or "test".
        vocab: numbers of words; by default one made of the words of this part.
        seq_len: words of a sample.

    Both are NDArrays of int32, of shape `(seq_len,)`. Each line of the text ends with `<eos>`;
    empty lines do not count, nor do words at the end that fill no sequence.

    Raises:
        MissingFileError: the file is not there; says where it is looked for.
        FormatError: the archive or the file cannot be read.
        ShapeError: the text is shorter than a sequence.
    """

    _name = "wikitext-2"


class WikiText103(_WikiText):
    """As `WikiText2`, of the 103 million words of WikiText-103."""

    _name = "wikitext-103"
