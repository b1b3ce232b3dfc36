"""Vectors of tokens: from a file, or several joined, for all their tokens or for a vocabulary.

An embedding is a vocabulary with a matrix, `idx_to_vec`, that has a row for each token; row 0 is
the vector of all tokens that are not indexed. Files have a token and its numbers in each line.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import (
    MissingFileError,
    ParamError,
    ShapeError,
    UnknownNameError,
    complaint,
    data_dir,
    nearest,
)
from gnomon.contrib.text.pretrained import FASTTEXT, GLOVE
from gnomon.contrib.text.vectors import read_vectors
from gnomon.contrib.text.vocab import Vocabulary
from gnomon.registry import get_create_func, get_register_func, get_registry

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "create",
    "get_pretrained_file_names",
    "register",
]

PathLike = str | os.PathLike[str]


class _TokenEmbedding(Vocabulary):
    """Base of embeddings: a subclass loads a file, or sets the matrix otherwise.

    Keyword arguments are those of `Vocabulary`; what it indexes stands before the file's tokens.
    `pretrained_file_name_sha1` has the names of the files that a subclass knows, with checksums
    where they are known.
    """

    pretrained_file_name_sha1: Mapping[str, str] = {}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._idx_to_vec: Any = None

    @property
    def idx_to_vec(self) -> Any:
        """The vectors of all indexed tokens: an array of shape (tokens, `vec_len`)."""
        return self._idx_to_vec

    @property
    def vec_len(self) -> int:
        """How many numbers a vector has."""
        return 0 if self._idx_to_vec is None else int(self._idx_to_vec.shape[1])

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> Any:
        """The vector of a token, or those of a list as the rows of an array.

        With `lower_case_backup` a token that is not indexed is looked for in lower case.
        """
        wanted = tokens if isinstance(tokens, list) else [tokens]
        if lower_case_backup:
            known = self._token_to_idx
            wanted = [token if token in known else token.lower() for token in wanted]
        rows = nd.array(np.array(self.to_indices(wanted), "int64"), dtype="int64")
        vectors = nd.take(self._idx_to_vec, rows)
        return vectors if isinstance(tokens, list) else vectors[0]

    def update_token_vectors(self, tokens: Any, new_vectors: Any) -> None:
        """Replace the vectors of a token, or of a list of tokens, by the rows of an array.

        Raises:
            TypeError: `new_vectors` is no array.
            ShapeError: it has another number of rows, or rows of another length.
            ParamError: a token is not indexed; `unknown_token` names the unknown vector.
        """
        wanted = tokens if isinstance(tokens, list) else [tokens]
        for token in wanted:
            if token not in self._token_to_idx:
                expected = f"indexed tokens; {self.unknown_token!r} stands for all others"
                raise ParamError(complaint("update_token_vectors", "tokens", expected, repr(token)))
        if not isinstance(new_vectors, nd.NDArray):
            got = type(new_vectors).__name__
            raise TypeError(complaint("update_token_vectors", "new_vectors", "an NDArray", got))
        shape = (len(wanted), self.vec_len)
        if new_vectors.shape != shape and (len(wanted), *new_vectors.shape) != (1, self.vec_len):
            expected = f"shape {shape}"
            got = new_vectors.shape
            raise ShapeError(complaint("update_token_vectors", "new_vectors", expected, got))
        rows = nd.array(np.array(self.to_indices(wanted), "int64"), dtype="int64")
        self._idx_to_vec[rows] = new_vectors.reshape(shape)

    def _load_embedding(
        self,
        pretrained_file_path: PathLike,
        elem_delim: str,
        init_unknown_vec: Callable[..., Any],
        encoding: str = "utf8",
    ) -> None:
        """Index the tokens of a file and take their vectors.

        Raises:
            FileError: it cannot be read.
            FormatError: its lines are no tokens with numbers, as many in each.
        """
        logging.info("reading the vectors of tokens from %s", pretrained_file_path)
        tokens, found = read_vectors(pretrained_file_path, elem_delim, encoding)
        self._extend([token for token in tokens if token not in self._token_to_idx])
        vectors = np.empty((len(self), found.shape[1]), np.float32)
        if self.unknown_token not in tokens:
            vectors[:] = init_unknown_vec(shape=found.shape[1]).asnumpy()
        else:
            vectors[:] = found[tokens[self.unknown_token]]
        vectors[self.to_indices(list(tokens))] = found
        self._idx_to_vec = nd.array(vectors)

    def _build_embedding_for_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Keep the tokens of `vocabulary` alone, where one is given.

        Raises:
            TypeError: it is no `Vocabulary`.
        """
        if vocabulary is not None:
            self._join(vocabulary, [self])

    def _join(self, vocabulary: Vocabulary, embeddings: list[Any]) -> None:
        """Index the tokens of `vocabulary`; their vectors are those of all `embeddings` joined."""
        where = type(self).__name__
        if not isinstance(vocabulary, Vocabulary):
            got = type(vocabulary).__name__
            raise TypeError(complaint(where, "vocabulary", "a Vocabulary", got))
        tokens = list(vocabulary.idx_to_token)
        vectors = nd.concat(*(each.get_vecs_by_tokens(tokens) for each in embeddings), dim=1)
        self._idx_to_token, self._token_to_idx = tokens, dict(vocabulary.token_to_idx)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = vocabulary.reserved_tokens
        self._idx_to_vec = vectors


register = get_register_func(_TokenEmbedding, "token embedding")
_create = get_create_func(_TokenEmbedding, "token embedding")


def create(embedding_name: Any, **kwargs: Any) -> Any:
    """A registered embedding by its name, as 'glove' or 'fasttext', made with `kwargs`."""
    return _create(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """The names of the files that a registered embedding knows, or a dictionary of all of them.

    >>> get_pretrained_file_names("glove")[1]
    'glove.6B.50d.txt'

    Raises:
        UnknownNameError: no embedding is registered under the name.
    """
    names = {
        name: list(each.pretrained_file_name_sha1)
        for name, each in get_registry(_TokenEmbedding).items()
    }
    if embedding_name is None:
        return names
    if embedding_name.lower() not in names:
        expected = f"one of {', '.join(names)}"
        where = "get_pretrained_file_names"
        got = repr(embedding_name)
        raise UnknownNameError(complaint(where, "embedding_name", expected, got))
    return names[embedding_name.lower()]


class _Pretrained(_TokenEmbedding):
    """An embedding from one of the files that are known, which stands in a folder of its own."""

    def __init__(
        self,
        pretrained_file_name: str,
        embedding_root: PathLike | None,
        init_unknown_vec: Callable[..., Any],
        vocabulary: Vocabulary | None,
        kwargs: dict[str, Any],
    ) -> None:
        where = type(self).__name__
        if pretrained_file_name not in self.pretrained_file_name_sha1:
            raise UnknownNameError(
                f"{where}: file {pretrained_file_name!r} is not known"
                + nearest(pretrained_file_name, self.pretrained_file_name_sha1)
            )
        super().__init__(**kwargs)
        root = Path(data_dir()) / "embeddings" if embedding_root is None else Path(embedding_root)
        path = root.expanduser() / where.lower() / pretrained_file_name
        if not path.is_file():
            raise MissingFileError(
                f"{where}: {path} is not there, and gnomon loads nothing from the network: get "
                f"{pretrained_file_name} from its makers and put it there, or name its folder's "
                "parent by embedding_root"
            )
        self._load_embedding(path, " ", init_unknown_vec)
        self._build_embedding_for_vocabulary(vocabulary)


@register
class GloVe(_Pretrained):
    """Vectors of GloVe, from the file `glove/NAME` in the folder `embedding_root`.

    By default that folder is `embeddings` in `mx.base.data_dir()`. Other keyword arguments are
    those of `Vocabulary`.

    Raises:
        UnknownNameError: GloVe has no file of that name.
        GnomonError: the file is not in the folder.
    """

    pretrained_file_name_sha1 = dict.fromkeys(GLOVE, "")

    def __init__(
        self,
        pretrained_file_name: str = "glove.840B.300d.txt",
        embedding_root: PathLike | None = None,
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, kwargs)


@register
class FastText(_Pretrained):
    """Vectors of fastText, from the file `fasttext/NAME` in the folder `embedding_root`.

    The arguments and errors are those of `GloVe`.
    """

    pretrained_file_name_sha1 = dict.fromkeys(FASTTEXT, "")

    def __init__(
        self,
        pretrained_file_name: str = "wiki.simple.vec",
        embedding_root: PathLike | None = None,
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, kwargs)


class CustomEmbedding(_TokenEmbedding):
    """Vectors from a file of the user's: a token and its numbers in each line.

    Args:
        pretrained_file_path: the file.
        elem_delim: stands between the token and its numbers.
        encoding: that of the file.
        init_unknown_vec: gives the vector of unknown tokens, of the shape `shape`, unless the file
            has one.
        vocabulary: the tokens to keep; by default all of the file.
        kwargs: arguments of `Vocabulary`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "my.vec")
    ...     _ = path.write_text("hello 1 2\\nworld 3 4\\n")
    ...     mine = CustomEmbedding(path)
    >>> mine.get_vecs_by_tokens(["world", "unseen"]).asnumpy()
    array([[3., 4.],
           [0., 0.]], dtype=float32)

    Raises:
        FileError: it cannot be read.
        FormatError: its lines are no tokens with numbers, as many in each.
    """

    def __init__(
        self,
        pretrained_file_path: PathLike,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._build_embedding_for_vocabulary(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """Vectors of the tokens of `vocabulary`: those of one or several embeddings, joined.

    Raises:
        TypeError: `vocabulary` is no `Vocabulary`, or one of `token_embeddings` no embedding.
        ParamError: there is no embedding.
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any) -> None:
        super().__init__()
        several = isinstance(token_embeddings, (list, tuple))
        embeddings = list(token_embeddings) if several else [token_embeddings]
        if not embeddings:
            expected = "at least one embedding"
            raise ParamError(complaint("CompositeEmbedding", "token_embeddings", expected, "none"))
        for each in embeddings:
            if not isinstance(each, _TokenEmbedding):
                got = type(each).__name__
                expected = "embeddings of tokens"
                raise TypeError(complaint("CompositeEmbedding", "token_embeddings", expected, got))
        self._join(vocabulary, embeddings)
