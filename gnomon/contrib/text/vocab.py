"""`Vocabulary`: tokens and their indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

from gnomon.base import ParamError, complaint, shown


class Vocabulary:
    """Tokens in a fixed order: the unknown token, reserved ones, then those that were counted.

    Args:
        counter: how often each token was seen; the most frequent come first, those of the same
            count in their own order.
        most_freq_count: how many of them are kept at most; all by default.
        min_freq: the count below which tokens are left out.
        unknown_token: stands for all tokens that are not indexed; its index is 0.
        reserved_tokens: are indexed whatever their count.

    >>> from collections import Counter
    >>> words = Vocabulary(Counter("abracadabra"), min_freq=2, reserved_tokens=["<pad>"])
    >>> words.idx_to_token
    ['<unk>', '<pad>', 'a', 'b', 'r']
    >>> words.to_indices(["a", "z"]), words.to_tokens(3)
    ([2, 0], 'b')

    Raises:
        TypeError: `counter` is no `collections.Counter`.
        ParamError: `min_freq` is below 1, a reserved token is there twice or is the unknown one.
    """

    def __init__(
        self,
        counter: Counter[Any] | None = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: Hashable = "<unk>",
        reserved_tokens: Iterable[Hashable] | None = None,
    ) -> None:
        if min_freq < 1:
            raise ParamError(complaint("Vocabulary", "min_freq", "at least 1", min_freq))
        if counter is not None and not isinstance(counter, Counter):
            got = type(counter).__name__
            raise TypeError(complaint("Vocabulary", "counter", "a collections.Counter", got))
        reserved = None if reserved_tokens is None else list(reserved_tokens)
        if len({unknown_token, *(reserved or ())}) <= len(reserved or ()):
            expected = f"distinct tokens other than the unknown one, {unknown_token!r}"
            raise ParamError(complaint("Vocabulary", "reserved_tokens", expected, reserved))
        self._unknown_token, self._reserved_tokens = unknown_token, reserved
        self._idx_to_token: list[Any] = []
        self._token_to_idx: dict[Any, int] = {}
        self._extend([unknown_token, *(reserved or ())])
        if counter:
            frequent = sorted(token for token, count in counter.items() if count >= min_freq)
            frequent.sort(key=counter.__getitem__, reverse=True)
            new = (token for token in frequent if token not in self._token_to_idx)
            limit = None if most_freq_count is None or most_freq_count < 0 else most_freq_count
            self._extend(list(islice(new, limit)))

    def _extend(self, tokens: list[Any]) -> None:
        """Index tokens behind those that are there."""
        first = len(self._idx_to_token)
        self._idx_to_token += tokens
        self._token_to_idx.update(zip(tokens, range(first, first + len(tokens)), strict=True))

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The indices by token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """The tokens in the order of their indices."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """The token that stands for those that are not indexed."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The tokens that were indexed whatever their count."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """The index of a token, or those of a list; 0 for each that is not indexed."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(token, 0) for token in tokens]
        return self._token_to_idx.get(tokens, 0)

    def to_tokens(self, indices: Any) -> Any:
        """The token of an index, or those of a list of indices.

        Raises:
            ParamError: an index is no whole number from 0 below the length.
        """
        if isinstance(indices, list):
            return [self._token(index) for index in indices]
        return self._token(indices)

    def _token(self, index: Any) -> Any:
        if not hasattr(index, "__index__") or not 0 <= index < len(self):
            expected = f"whole numbers from 0 below {len(self)}"
            raise ParamError(complaint("to_tokens", "indices", expected, shown(index)))
        return self._idx_to_token[index]
