"""Thousands of bad bodies and heads: always an error, never a crash, a hang or growth."""

import gc
import json
import random
import socket
from pathlib import Path

import numpy as np
import pytest
from served import LENGTH, Client, mlp, raw, tensor

import gnomon as mx
from gnomon import serving

ROUNDS = 3000
GOOD = {
    "id": "1",
    "parameters": {"binary_data_output": False},
    "inputs": [tensor("data", np.ones((2, 4)))],
    "outputs": [{"name": "softmax_output", "parameters": {"binary_data": False}}],
}
ODD = [
    None, True, False, 0, -1, 1, 2, 1.5, 10**30, -(2**63), float("nan"), float("inf"), "", "x",
    "FP32", "data", "\ud800", "\x00", [], {}, [[]], [[[1]]], [None], {"a": 1}, ["a"], [1, "a"],
    [1e400], [2**64], "a" * 500, [[1, 2], [3]], {"binary_data_size": 3}, {"binary_data_size": -1},
]  # fmt: skip


@pytest.fixture(scope="module")
def server():
    x = mx.sym.Variable("x")
    models = {
        "m": mlp(np.random.default_rng(0), (4, 8, 3)),
        "any": serving.Model(mx.sym.square(x, name="y"), {}, {"x": (-1, -1)}, {"x": "int32"}),
    }
    with serving.Server(models, timeout_s=20, idle_s=20) as made:
        yield made


def mutated(value, rng):
    """A copy in which something is another thing."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    if isinstance(value, dict):
        found = {k: v for k, v in value.items() if rng.random() > 0.04}
        if found:
            key = rng.choice(list(found))
            found[key] = mutated(found[key], rng)
        if rng.random() < 0.1:
            found[rng.choice(["data", "shape", "name", "parameters", "x"])] = rng.choice(ODD)
        return found
    if isinstance(value, list) and value:
        found = list(value)
        found[rng.randrange(len(found))] = mutated(rng.choice(found), rng)
        return found if rng.random() > 0.1 else found + found[: rng.randrange(3)]
    return rng.choice(ODD)


def body_of(rng):
    """A body that is probably bad."""
    text = json.dumps(mutated(GOOD, rng)).encode()
    how = rng.random()
    if how < 0.15:  # bytes that are no JSON
        data = bytearray(text)
        for _ in range(rng.randrange(1, 9)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    if how < 0.2:
        return text[: rng.randrange(len(text))]
    return text + rng.randbytes(rng.randrange(40)) if how < 0.3 else text


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_bad_bodies(server):
    rng, statuses = random.Random(0), []
    with Client(server) as client:
        for number in range(ROUNDS):
            if number == ROUNDS // 2:
                gc.collect()
                before = resident()
            body, head = body_of(rng), {}
            if rng.random() < 0.3:
                length = rng.choice(["0", "1", "x", "-3", str(len(body)), str(rng.randrange(300))])
                head = {LENGTH: length}
            model = rng.choice(["m", "any"])
            status, _, told = client.ask("POST", f"/v2/models/{model}/infer", body, head)
            statuses.append(status)
            assert status in (200, 400), (status, told, body)
            if status == 400:
                assert json.loads(told)["error"].startswith(f"{model}: "), told
        gc.collect()
        assert resident() - before < 32 << 20
        assert client.infer("m", GOOD["inputs"][0])[0] == 200
        metrics = client.metrics()
    assert statuses.count(400) > ROUNDS / 2
    counted = sum(v for k, v in metrics.items() if k.startswith("gnomon_requests_total"))
    assert counted == ROUNDS + 1  # its own reply is not yet counted
    assert not any("nope" in name for name in metrics)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"inputs":' * 50_000,
        b'{"inputs": [{"name": "data", "data": ' + b"[" * 90_000 + b"]" * 90_000 + b"}]}",
        b'{"inputs": [' + b"{}," * 100_000 + b"{}]}",
        b"1" * 100_000,
        b"\xff\xfe" * 1000,
        b"",
    ],
)
def test_bodies_that_are_deep_or_long(server, body):
    with Client(server) as client:
        status, _, told = client.ask("POST", "/v2/models/m/infer", body)
    assert (status, len(told) < 500) == (400, True)


def test_bad_heads(server):
    rng = random.Random(1)
    good = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with socket.create_connection((server.host, server.port), timeout=30) as connection:
            connection.sendall(bytes(data))
            connection.shutdown(socket.SHUT_WR)  # where more is expected, none comes
            found = connection.recv(1 << 16)
        assert not found or found[9:10] in b"2345", found
    with Client(server) as client:
        assert client.get("/v2/health/ready")[0] == 200


def test_unknown_models_make_no_metrics(server):
    with Client(server) as client:
        for number in range(50):
            assert client.get(f"/v2/models/nope{number}")[0] == 404
        assert not any("nope" in name for name in client.metrics())


def test_a_body_that_ends_early_harms_nothing(server):
    for _ in range(50):
        with socket.create_connection((server.host, server.port), timeout=30) as connection:
            connection.sendall(
                b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n{"
            )
    reply = raw(server, b"GET /v2/health/ready HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200")
