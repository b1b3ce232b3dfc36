"""Iterators: names, shapes, wrapping, joining, prefetching, and what they refuse."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import gnomon as mx
from gnomon.io import DataBatch, DataDesc, DataIter, NDArrayIter, PrefetchingIter, ResizeIter


def five(**kwargs):
    return NDArrayIter(np.arange(10).reshape(5, 2), np.arange(5), 2, **kwargs)


def labels(batches):
    return [batch.label[0].asnumpy().tolist() for batch in batches]


def test_descriptions_are_tuples_of_name_and_shape():
    desc = DataDesc("data", (1, 2), "float64", "NT")
    assert desc == ("data", (1, 2))
    assert repr(desc) == "DataDesc[data,(1, 2),float64,NT]"
    assert [DataDesc.get_batch_axis(x) for x in (None, "NCHW", "TNC", "TC")] == [0, 0, 1, -1]
    assert DataDesc.get_list([("a", (1,))], None)[0].dtype is np.float32
    with pytest.raises(TypeError, match="types"):
        DataDesc.get_list([("a", (1,))], [("b", "int32")])


def test_names_of_several_arrays():
    zeros = np.zeros((4, 2))
    several = NDArrayIter([zeros, zeros], batch_size=2)
    assert [d.name for d in several.provide_data] == ["_0_data", "_1_data"]
    assert several.provide_label == []
    named = NDArrayIter({"z": zeros, "b": np.zeros((4, 3))}, {"y": np.zeros(4)}, 2)
    assert named.provide_data == [("b", (2, 3)), ("z", (2, 2))]
    assert named.provide_label == [("y", (2,))]
    assert str(next(named)) == "DataBatch: data shapes: [(2, 3), (2, 2)] label shapes: [(2,)]"


def test_iterators_of_programs_name_arrays_by_the_function_of_mxnet():
    for module in (mx.io, mx.io.io):
        named = module._init_data({"b": np.arange(2), "a": mx.nd.ones((1,))}, False, "data")
        assert [name for name, _ in named] == ["a", "b"]
        assert {array.dtype for _, array in named} == {np.float32}
        named = module._init_data([np.ones(1), np.ones(1)], True, "x")
        assert [name for name, _ in named] == ["_0_x", "_1_x"]
        assert module._init_data(None, True, "data") == []
    assert [array.shape for array in five().data_list] == [(5, 2), (5,)]


def test_a_batch_may_be_larger_than_the_data():
    batch = NDArrayIter(np.arange(2), batch_size=5).next()
    assert batch.data[0].asnumpy().tolist() == [0, 1, 0, 1, 0]
    assert batch.pad == 3


def test_arrays_are_batched_without_copies():
    data = mx.nd.zeros((4, 2))
    batch = NDArrayIter(data, batch_size=2).next()
    data[:] = 7
    assert batch.data[0].asnumpy().tolist() == [[7, 7], [7, 7]]


def test_shuffling_keeps_rows_together_and_the_source_as_it_is():
    source = mx.nd.array(np.arange(40).reshape(20, 2))
    before = source.asnumpy()
    np.random.seed(1)
    batches = list(NDArrayIter(source, np.arange(20) * 2, 5, shuffle=True))
    rows = np.concatenate([b.data[0].asnumpy() for b in batches])
    assert rows[:, 0].tolist() == [x for b in labels(batches) for x in b]
    assert sorted(rows[:, 0]) == before[:, 0].tolist()
    assert (source.asnumpy() == before).all()


def test_hard_reset_forgets_what_rolled_over():
    batches = five(last_batch_handle="roll_over")
    assert labels(batches) == [[0, 1], [2, 3]]
    batches.hard_reset()
    assert labels(batches) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"data": []}, "at least one array"),
        ({"data": "x"}, "got str"),
        ({"data": np.zeros((4, 2)), "label": np.zeros(3)}, "4 rows"),
        ({"data": np.zeros((0, 2))}, "at least one row"),
        ({"data": np.zeros(4), "batch_size": 0}, "batch_size"),
        ({"data": np.zeros(4), "batch_size": 2.0}, "batch_size.*a whole number from 1, got 2.0"),
        ({"data": np.zeros(4), "batch_size": "2"}, "batch_size.*a whole number from 1, got '2'"),
        ({"data": [1.0]}, "'data': expected an array of rows, got a single number"),
        ({"data": np.array([1, "a"], object)}, "an array of numbers, got ndarray of dtype object"),
        ({"data": np.zeros(4), "last_batch_handle": "drop"}, "roll_over"),
        ({"data": {"a": object()}}, "'a'"),
        (
            {"data": np.zeros(4), "batch_size": 5, "last_batch_handle": "roll_over"},
            "'batch_size': expected at most 4",
        ),
    ],
)
def test_refused_arguments(wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        NDArrayIter(**wrong)


def test_batches_hold_lists():
    with pytest.raises(TypeError, match="list of NDArrays"):
        DataBatch(mx.nd.zeros((2,)))


def test_resized_epochs():
    resized = ResizeIter(five(), 4)
    for _ in range(2):
        assert labels(resized) == [[0, 1], [2, 3], [4, 0], [0, 1]]
        resized.reset()
    going_on = ResizeIter(five(), 2, reset_internal=False)
    seen = []
    for _ in range(3):
        seen.append(labels(going_on))
        going_on.reset()
    assert seen == [[[0, 1], [2, 3]], [[4, 0], [0, 1]], [[2, 3], [4, 0]]]


def test_prefetching_joins_and_renames():
    joined = PrefetchingIter(
        [five(), five()],
        rename_data=[{"data": "a"}, {"data": "b"}],
        rename_label=[{"softmax_label": "x"}, {"softmax_label": "y"}],
    )
    assert [d.name for d in joined.provide_data] == ["a", "b"]
    assert [d.name for d in joined.provide_label] == ["x", "y"]
    assert joined.batch_size == 2
    for _ in range(2):
        batches = list(joined)
        assert [b.pad for b in batches] == [0, 0, 1]
        assert [b.label[1].asnumpy().tolist() for b in batches] == [[0, 1], [2, 3], [4, 0]]
        joined.reset()


class Flaky(DataIter):
    """Gives a batch, then fails once, on whatever thread it is asked."""

    provide_data = (DataDesc("data", (1,)),)

    def __init__(self):
        super().__init__(1)
        self.calls = 0
        self.threads = set()

    def next(self):
        self.calls += 1
        self.threads.add(threading.current_thread())
        if self.calls == 2:
            raise OSError("the disk is gone")
        return DataBatch([mx.nd.array([self.calls])])


def test_errors_reach_whoever_asks():
    source = Flaky()
    ahead = PrefetchingIter(source)
    assert ahead.next().data[0].asnumpy().tolist() == [1]
    with pytest.raises(OSError, match="disk is gone"):
        ahead.next()
    ahead.reset()
    assert ahead.next().data[0].asnumpy().tolist() == [3]
    assert threading.main_thread() not in source.threads


def count_batches(ahead, results):
    results.put([len(list(ahead)) for _ in range(2) if ahead.reset() is None])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_goes_on():
    ahead = PrefetchingIter(five())
    ahead.next()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=count_batches, args=(ahead, results))
    child.start()
    assert results.get(timeout=30) == [3, 3]
    child.join(30)
    assert child.exitcode == 0
    assert len(list(ahead)) == 2


def test_sources_that_end_at_different_times_are_an_error():
    joined = PrefetchingIter([five(), NDArrayIter(np.zeros((2, 2)), batch_size=2)])
    joined.next()
    with pytest.raises(mx.GnomonError, match=r"\[1\] ended before"):
        joined.next()


@pytest.mark.parametrize("wrong", [{"iters": []}, {"iters": [None], "rename_data": [{}, {}]}])
def test_prefetching_refuses(wrong):
    with pytest.raises(ValueError, match="PrefetchingIter"):
        PrefetchingIter(**wrong)


@pytest.mark.parametrize("last", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_data_sets_of_h5py_are_read_batch_by_batch(tmp_path, shuffle, last, monkeypatch):
    import h5py  # a folder of shared code, which takes long to load

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["rows"], file["numbers"] = np.arange(44.0).reshape(11, 4), np.arange(11)
    with h5py.File(tmp_path / "x.h5", "r") as file:
        rows, asked = file["rows"], []
        get = h5py.Dataset.__getitem__
        count = lambda self, key: asked.append(found := get(self, key)) or found  # noqa: E731
        monkeypatch.setattr(h5py.Dataset, "__getitem__", count)
        np.random.seed(3)
        iterator = NDArrayIter(rows, {"y": file["numbers"]}, 4, shuffle, last)
        assert iterator.provide_data[0] == DataDesc("data", (4, 4))
        for _ in range(2):
            seen = [(b.data[0].asnumpy(), b.label[0].asnumpy()) for b in iterator]
            for data, numbers in seen:
                np.testing.assert_array_equal(data, numbers[:, None] * 4 + np.arange(4))
            order = np.concatenate([numbers for _, numbers in seen])[:8].tolist()
            assert shuffle == (order not in ([*range(8)], [8, 9, 10, *range(5)]))
            iterator.reset()
        assert max(len(part) for part in asked) <= 4  # never the whole


def test_a_batch_larger_than_a_data_set_of_h5py(tmp_path):
    import h5py  # a folder of shared code, which takes long to load

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["rows"] = np.arange(3)
        batch = next(NDArrayIter([file["rows"]], batch_size=8))
    assert batch.data[0].asnumpy().tolist() == [0, 1, 2] * 2 + [0, 1] and batch.pad == 5


def test_a_wrong_setting_is_no_fault_of_the_data(tmp_path):
    code = "import numpy, gnomon as mx; mx.io.NDArrayIter(numpy.ones((4, 2)), batch_size=2)"
    env = {**os.environ, "GNOMON_NATIVE": "perhaps"}  # read when the first array is made
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=False, capture_output=True, text=True
    )
    assert "environment variable GNOMON_NATIVE: argument 'native'" in done.stderr
    assert "NDArrayIter: argument" not in done.stderr
