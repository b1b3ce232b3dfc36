"""`mx.contrib.text`: the values are those that MXNet 1.9.1 prints."""

from collections import Counter

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.contrib import text
from gnomon.contrib.text.embedding import CompositeEmbedding, CustomEmbedding
from gnomon.contrib.text.vocab import Vocabulary

COUNTS = Counter({"a": 3, "b": 2, "c": 2, "some_word$": 1, "d": 1})
LINES = "a 0.1 0.2 0.3\nb 0.4 0.5 0.6\n<unk> 7 8 9\nworld 3 3 3\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "v.vec"
    path.write_text(LINES)
    return path


@pytest.fixture
def vectors(path):
    return CustomEmbedding(path)


def close(array, expected):
    np.testing.assert_allclose(array.asnumpy(), expected, rtol=1e-6)


# --- vocabularies ---------------------------------------------------------------------------


def test_counts_of_tokens():
    found = text.utils.count_tokens_from_str(" Life is ! \n life is . \n", " ", "\n", True)
    assert found == Counter({"life": 2, "is": 2, "!": 1, ".": 1})
    counter = Counter(a=3)
    assert text.utils.count_tokens_from_str("a.b..c|d|", r"\.", r"\|", False, counter) is counter
    assert counter == Counter(a=4, b=1, c=1, d=1)


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, "<unk> a b c d some_word$"),
        ({"most_freq_count": 2}, "<unk> a b"),
        ({"most_freq_count": 0}, "<unk>"),
        ({"most_freq_count": -1}, "<unk> a b c d some_word$"),
        ({"min_freq": 2}, "<unk> a b c"),
        ({"min_freq": 2, "unknown_token": "a"}, "a b c"),
        ({"most_freq_count": 2, "unknown_token": "a"}, "a b c"),
        ({"reserved_tokens": ["b", "<pad>"]}, "<unk> b <pad> a c d some_word$"),
        ({"most_freq_count": 2, "reserved_tokens": ["a", "x"]}, "<unk> a x b c"),
        ({"reserved_tokens": []}, "<unk> a b c d some_word$"),
    ],
)
def test_order_of_tokens(options, tokens):
    found = Vocabulary(COUNTS, **options)
    assert found.idx_to_token == tokens.split()
    assert found.token_to_idx == {token: k for k, token in enumerate(tokens.split())}
    assert len(found) == len(tokens.split())
    assert found.unknown_token == options.get("unknown_token", "<unk>")
    assert found.reserved_tokens == options.get("reserved_tokens")


def test_tokens_and_indices():
    found = Vocabulary(COUNTS)
    assert found.to_indices("a") == 1
    assert found.to_indices(["a", "zz"]) == [1, 0]
    assert found.to_tokens(np.int64(1)) == "a"
    assert found.to_tokens([1, 2]) == ["a", "b"]
    pairs = Vocabulary(Counter({(1, 2): 2}), unknown_token=(0,))
    assert pairs.to_indices((1, 2)) == 1


@pytest.mark.parametrize("index", [99, -1, 1.0, "a", [0, 6]])
def test_other_indices_are_refused(index):
    with pytest.raises(ValueError, match="to_tokens: argument 'indices': expected whole numbers"):
        Vocabulary(COUNTS).to_tokens(index)


@pytest.mark.parametrize(
    ("counter", "options", "message"),
    [
        (COUNTS, {"min_freq": 0}, "'min_freq': expected at least 1, got 0"),
        (COUNTS, {"reserved_tokens": ["<unk>"]}, "'reserved_tokens': expected distinct"),
        (COUNTS, {"reserved_tokens": ["b", "b"]}, "'reserved_tokens': expected distinct"),
        ({"a": 1}, {}, "'counter': expected a collections.Counter, got dict"),
    ],
)
def test_vocabularies_refuse(counter, options, message):
    with pytest.raises((ValueError, TypeError), match=f"Vocabulary: argument {message}"):
        Vocabulary(counter, **options)


# --- vectors --------------------------------------------------------------------------------


def test_vectors_of_a_file(vectors):
    assert vectors.idx_to_token == ["<unk>", "a", "b", "world"]
    assert vectors.vec_len == 3
    close(vectors.idx_to_vec, [[7, 8, 9], [0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [3, 3, 3]])
    close(vectors.get_vecs_by_tokens("A"), [7, 8, 9])
    close(vectors.get_vecs_by_tokens("A", lower_case_backup=True), [0.1, 0.2, 0.3])
    found = vectors.get_vecs_by_tokens(["a", "q", "B"], True)
    close(found, [[0.1, 0.2, 0.3], [7, 8, 9], [0.4, 0.5, 0.6]])


def test_vectors_are_updated(vectors):
    vectors.update_token_vectors("a", nd.array([1, 1, 1]))
    vectors.update_token_vectors(["b", "<unk>"], nd.array([[2, 2, 2], [3, 4, 5]]))
    vectors.update_token_vectors("world", nd.array([[4, 1, 1]]))
    close(vectors.idx_to_vec, [[3, 4, 5], [1, 1, 1], [2, 2, 2], [4, 1, 1]])


@pytest.mark.parametrize(
    ("tokens", "new", "message"),
    [
        ("q", nd.ones(3), "'tokens': expected indexed tokens; '<unk>' stands for all"),
        ("a", nd.ones(2), r"'new_vectors': expected shape \(1, 3\), got \(2,\)"),
        (["a"], nd.ones((2, 3)), r"'new_vectors': expected shape \(1, 3\), got \(2, 3\)"),
        ("a", [1, 1, 1], "'new_vectors': expected an NDArray, got list"),
    ],
)
def test_wrong_updates_change_nothing(tokens, new, message, vectors):
    before = vectors.idx_to_vec.asnumpy()
    with pytest.raises((ValueError, TypeError), match=f"update_token_vectors: argument {message}"):
        vectors.update_token_vectors(tokens, new)
    close(vectors.idx_to_vec, before)


def test_tokens_of_a_vocabulary(path):
    found = CustomEmbedding(path, vocabulary=Vocabulary(COUNTS))
    assert found.idx_to_token == ["<unk>", "a", "b", "c", "d", "some_word$"]
    close(found.idx_to_vec[:4], [[7, 8, 9], [0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [7, 8, 9]])


def test_arguments_of_the_vocabulary(path):
    found = CustomEmbedding(path, unknown_token="UU", init_unknown_vec=nd.ones)
    assert found.idx_to_token == ["UU", "a", "b", "<unk>", "world"]
    close(found.get_vecs_by_tokens("q"), [1, 1, 1])
    found = CustomEmbedding(path, reserved_tokens=["<pad>"])
    assert found.idx_to_token == ["<unk>", "<pad>", "a", "b", "world"]
    close(found.idx_to_vec[1], [7, 8, 9])
    found = CustomEmbedding(path, counter=COUNTS, min_freq=2)
    assert found.idx_to_token == ["<unk>", "a", "b", "c", "world"]
    close(found.get_vecs_by_tokens("a"), [0.1, 0.2, 0.3])


def test_embeddings_are_joined(vectors):
    words = Vocabulary(COUNTS, min_freq=2)
    found = CompositeEmbedding(words, [vectors, vectors])
    assert (found.idx_to_token, found.vec_len) == (words.idx_to_token, 6)
    close(found.get_vecs_by_tokens(["a", "c"]), [[0.1, 0.2, 0.3] * 2, [7, 8, 9] * 2])
    assert CompositeEmbedding(words, vectors).vec_len == 3
    for embeddings in ([], [vectors, 3], words):
        with pytest.raises((ValueError, TypeError), match="'token_embeddings': expected"):
            CompositeEmbedding(words, embeddings)
    with pytest.raises(TypeError, match="argument 'vocabulary': expected a Vocabulary, got Count"):
        CompositeEmbedding(COUNTS, vectors)


def test_headers_and_second_lines_are_passed_over(path):
    path.write_text("4 3\na 1 2 3 \nb 4 5 6\na 7 8 9\n")
    with pytest.warns(UserWarning, match="line") as seen:
        found = CustomEmbedding(path)
    assert [str(w.message).partition("v.vec, ")[2] for w in seen] == [
        "line 1: '4' and one number are left out",
        "line 4: token 'a' had a vector, which stays",
    ]
    close(found.idx_to_vec, [[0, 0, 0], [1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a 1 2\nb 1 2 3\n", "line 2: expected 2 numbers, got 3"),
        ("a 1 2\n\n", "line 2: expected a token and numbers with ' ' between, got ''"),
        ("a,1,2\n", "line 1: expected a token and numbers with ' ' between, got 'a,1,2'"),
        ("a 1 x\n", "line 1: expected numbers after 'a': .*'x'"),
        ("", "expected lines of a token and its vector, got none"),
    ],
)
def test_other_files_are_refused(lines, message, path):
    path.write_text(lines)
    with pytest.raises(mx.base.FormatError, match=f"v.vec.*{message}"):
        CustomEmbedding(path)


def test_delimiter_and_encoding(path):
    path.write_text("ä,1,2\n", encoding="latin-1")
    found = CustomEmbedding(path, elem_delim=",", encoding="latin-1")
    close(found.get_vecs_by_tokens("ä"), [1, 2])
    with pytest.raises(mx.MXNetError, match=r"embedding: cannot read '.*none.vec'"):
        CustomEmbedding(path.parent / "none.vec")


# --- files that are known -------------------------------------------------------------------


def test_known_files():
    names = text.embedding.get_pretrained_file_names()
    assert list(names)[:2] == ["glove", "fasttext"]
    assert (len(names["glove"]), len(names["fasttext"])) == (10, 327)
    assert text.embedding.get_pretrained_file_names("GloVe") == names["glove"]
    assert names["fasttext"][:2] == ["crawl-300d-2M.vec", "wiki.aa.vec"]
    with pytest.raises(KeyError, match="'embedding_name': expected one of glove, fasttext"):
        text.embedding.get_pretrained_file_names("nope")


KNOWN = [("glove", "glove.6B.50d.txt"), ("fasttext", "wiki.de.vec")]


@pytest.mark.parametrize(("kind", "name"), KNOWN)
def test_files_in_a_folder(kind, name, tmp_path):
    (tmp_path / kind).mkdir()
    options = {"pretrained_file_name": name, "embedding_root": tmp_path}
    with pytest.raises(mx.MXNetError, match=f"{name} is not there, and gnomon loads nothing"):
        text.embedding.create(kind, **options)
    (tmp_path / kind / name).write_text(LINES)
    found = text.embedding.create(kind, **options, vocabulary=Vocabulary(Counter("ab")))
    close(found.idx_to_vec, [[7, 8, 9], [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


def test_unknown_files_and_embeddings():
    with pytest.raises(KeyError, match=r"did you mean 'glove\.6B\.50d\.txt'"):
        text.embedding.GloVe("glove.6B.50.txt")
    with pytest.raises(KeyError, match="token embedding 'nope' is not registered"):
        text.embedding.create("nope")
    with pytest.raises(ValueError, match="expected a subclass of _TokenEmbedding"):
        text.embedding.register(int)
