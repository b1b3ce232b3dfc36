"""Batches: what is joined, who waits for what, and 100 clients at once."""

import threading
import time

import numpy as np
import pytest
from served import Client, binary, custom, mlp, tensor

from gnomon import serving
from gnomon.serving.batching import FullError, Job, Queue
from gnomon.serving.model import Options
from gnomon.serving.predictor import Predictor


def queue(*jobs, **options):
    """A queue of jobs, each a number of items and their shapes."""
    made = Queue(Options(**{"max_delay_ms": 0, **options}))
    for rows, items in jobs:
        made.put(Job({}, rows, items, None))
    return made


def sizes(batch):
    return [job.rows for job in batch]


def test_jobs_of_equal_shapes_are_joined_in_order():
    waiting = queue((1, "a"), (2, "b"), (3, "a"), (1, "b"), max_batch=8)
    assert len(waiting) == 4
    assert sizes(waiting.take()) == [1, 3]
    assert sizes(waiting.take()) == [2, 1]
    assert len(waiting) == 0


def test_a_batch_ends_before_a_job_that_does_not_fit():
    waiting = queue((5, "a"), (4, "a"), (1, "a"), (8, "a"), max_batch=8)
    assert [sizes(waiting.take()) for _ in range(3)] == [[5], [4, 1], [8]]


def test_without_batches_each_job_is_alone():
    waiting = queue((1, "a"), (1, "a"), batch=False, max_delay_ms=1e6)
    assert [sizes(waiting.take()) for _ in range(2)] == [[1], [1]]


def test_a_job_waits_for_others_until_the_batch_is_full():
    waiting, found = queue((1, "a"), max_batch=3, max_delay_ms=1e6), []
    thread = threading.Thread(target=lambda: found.append(sizes(waiting.take())))
    thread.start()
    waiting.put(Job({}, 1, "b", None))  # of another shape: it fills nothing
    thread.join(0.05)
    assert not found
    waiting.put(Job({}, 2, "a", None))
    thread.join(10)
    assert found == [[1, 2]]


def test_a_full_batch_overtakes_an_older_one_that_waits():
    waiting = queue((1, "a"), (4, "b"), max_batch=4, max_delay_ms=1e6)
    assert sizes(waiting.take()) == [4]


def test_a_job_waits_no_longer_than_the_delay():
    began = time.monotonic()
    assert sizes(queue((1, "a"), max_batch=9, max_delay_ms=50).take()) == [1]
    assert 0.04 < time.monotonic() - began < 10


def test_a_full_queue_refuses():
    waiting = queue((1, "a"), (1, "b"), queue_limit=2)
    with pytest.raises(FullError):
        waiting.put(Job({}, 1, "a", None))
    waiting.take()
    waiting.put(Job({}, 1, "a", None))


def test_a_job_that_is_not_wanted_leaves():
    waiting, job = queue((1, "a"), max_batch=8), Job({}, 5, "a", None)
    waiting.put(job)
    waiting.discard(job)
    waiting.discard(job)
    assert (len(waiting), sizes(waiting.take())) == (1, [1])


def test_a_closed_queue_lets_workers_go():
    waiting, found = queue(), []
    threads = [threading.Thread(target=lambda: found.append(waiting.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert waiting.close() == []
    for thread in threads:
        thread.join(10)
    assert found == [[], [], []]
    with pytest.raises(FullError):
        waiting.put(Job({}, 1, "a", None))


def test_a_worker_that_leaves_jobs_wakes_another():
    waiting, found = queue(max_batch=2), []
    threads = [threading.Thread(target=lambda: found.append(waiting.take())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        waiting.put(Job({}, 1, "a", None))
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    taken = sum(map(len, found))
    waiting.close()
    assert taken >= 2


# --- over HTTP ------------------------------------------------------------------------------


def own(model, values):
    """The model's predictions for items at each size of a batch, in turn alone."""
    predictor, found = Predictor(model), []
    for rows in model.options.sizes():
        bound = predictor._executor(rows, model.fixed)
        whole = np.zeros((rows, *values.shape[1:]), np.float32)
        parts = []
        for begin in range(0, len(values), rows):
            part = values[begin : begin + rows]
            whole[: len(part)] = part
            bound.inputs["data"][...] = whole
            parts.append(next(iter(bound.compute().values()))[: len(part)])
        found.append(np.concatenate(parts))
    return found


def ask_many(server, values, seed, results):
    """Requests of random sizes of one client, with what it got."""
    rng = np.random.default_rng(seed)
    with Client(server) as client:
        for _ in range(12):
            count = int(rng.integers(1, 9))
            rows = rng.integers(0, len(values), count)
            if rng.random() < 0.5:
                status, _, data = client.infer_bytes("m", [binary("data", values[rows])])
                found = np.frombuffer(data, np.float32).reshape(count, -1)
            else:
                status, told = client.infer("m", tensor("data", values[rows]))
                found = np.array(told["outputs"][0]["data"], np.float32).reshape(count, -1)
            results.append((status, rows, found))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_hundred_clients_get_the_predictions_of_the_model(workers):
    rng = np.random.default_rng(0)
    model = mlp(rng, (20, 64, 10), max_batch=16, workers=workers)
    values = rng.normal(size=(64, 20)).astype(np.float32)
    expected, results = own(model, values), []
    with serving.Server({"m": model}) as server:
        threads = [
            threading.Thread(target=ask_many, args=(server, values, seed, results))
            for seed in range(100)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with Client(server) as client:
            metrics = client.metrics()
    assert len(results) == 1200
    exact = 0
    for status, rows, found in results:
        assert status == 200
        np.testing.assert_allclose(found, expected[0][rows], rtol=1e-5, atol=1e-7)
        exact += any(np.array_equal(found, e[rows]) for e in expected)
    assert exact == len(results)
    items = sum(len(rows) for _, rows, _ in results)
    assert metrics['gnomon_batch_rows_sum{model="m"}'] == items
    assert metrics['gnomon_batch_rows_count{model="m"}'] < 1200  # some were joined


def test_a_request_that_fails_does_no_harm_to_others():
    model = custom("picky", max_batch=8, max_delay_ms=1e5)
    rows = [[1, 2], [13, 0], [3, 4], [5, np.nan], [6, 6], [7, 7], [13, 13], [9, 9]]
    replies = [None] * 8

    def ask(k):
        with Client(server) as client:
            replies[k] = client.infer("m", tensor("x", [rows[k]]))

    with serving.Server({"m": model}) as server:
        threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    for row, (status, told) in zip(rows, replies, strict=True):
        assert status == (500 if 13 in row else 200)
        if status == 200:
            np.testing.assert_array_equal(told["outputs"][0]["data"], row)
        else:
            assert "thirteen" in told["error"]


def test_equal_numbers_of_items_give_equal_bits():
    """Without joining, a prediction is the model's own, bit for bit."""
    rng = np.random.default_rng(0)
    model = mlp(rng, (20, 64, 10), max_batch=16, max_delay_ms=0)
    values = rng.normal(size=(16, 20)).astype(np.float32)
    expected = dict(zip(model.options.sizes(), own(model, values), strict=True))
    with serving.Server({"m": model}) as server, Client(server) as client:
        for count, own_values in expected.items():
            _, _, data = client.infer_bytes("m", [binary("data", values[:count])])
            found = np.frombuffer(data, np.float32).reshape(count, -1)
            np.testing.assert_array_equal(found, own_values[:count])
