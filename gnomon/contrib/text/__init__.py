"""Vocabularies of texts, and vectors of their tokens."""

from gnomon.contrib.text import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
