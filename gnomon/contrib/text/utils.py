"""`count_tokens_from_str`: how often each token stands in a text."""

from __future__ import annotations

import re
from collections import Counter


def count_tokens_from_str(
    source_str: str,
    token_delim: str = " ",
    seq_delim: str = "\n",
    to_lower: bool = False,
    counter_to_update: Counter[str] | None = None,
) -> Counter[str]:
    r"""Count the tokens between `token_delim` and `seq_delim`, which are regular expressions.

    `counter_to_update` keeps its counts and is returned with those of `source_str` added; without
    it the counter is new.

    >>> count_tokens_from_str(" Life is great ! \n life is good . \n", to_lower=True)["life"]
    2
    """
    text = source_str.lower() if to_lower else source_str
    counter: Counter[str] = Counter() if counter_to_update is None else counter_to_update
    counter.update(filter(None, re.split(f"{token_delim}|{seq_delim}", text)))
    return counter
