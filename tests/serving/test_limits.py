"""What a server refuses, how long it waits, and how it ends: nothing hangs, nothing is lost."""

import contextlib
import json
import socket
import threading
import time

import numpy as np
import pytest
import served
from served import Client, custom, mlp, raw, read_all, tensor

import gnomon as mx
from gnomon import serving
from gnomon.base import GnomonError, ParamError

X = tensor("x", [[1, 2]])
BODY = json.dumps({"inputs": [X]}).encode()
REPLY = {"name": "y_output", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}


def post(length, model="m", more=""):
    head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: h\r\n{more}"
    return (head + (f"Content-Length: {length}\r\n\r\n" if length is not None else "\r\n")).encode()


@pytest.fixture
def gated():
    """Makes a server whose model `m` waits for the gate; opens it in the end."""
    served.gate.set()  # it starts by computing
    servers = []

    def make(model=None, **limits):
        server = serving.Server({"m": custom("gate", **(model or {}))}, **limits)
        server.start()
        servers.append(server)
        served.gate.clear()
        while served.entered.acquire(blocking=False):
            pass
        return server

    yield make
    served.gate.set()
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def plain():
    model = mlp(np.random.default_rng(0))
    with serving.Server({"m": model}, max_request_bytes=10_000, timeout_s=1, idle_s=1) as server:
        yield server


class Asking(threading.Thread):
    """A request for the model, by a client of its own."""

    def __init__(self, server, rows=((1, 2),)):
        super().__init__()
        self.server, self.rows, self.told = server, rows, None
        self.start()

    def run(self):
        with Client(self.server, timeout=60) as client:
            self.told = client.infer("m", tensor("x", self.rows))

    def result(self):
        self.join(60)
        return self.told


def eventually(condition):
    """Wait for what other threads do."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# --- refused by the head --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "status", "complaint"),
    [
        (post(10_001), 413, "expected a body of at most 10000 bytes, got 10001"),
        (post(10**18), 413, "at most 10000 bytes"),
        (post(None), 411, "expected a Content-Length"),
        (post(None, more="Transfer-Encoding: chunked\r\n"), 411, "expected a Content-Length"),
        (post(9, more="Content-Encoding: gzip\r\n"), 415, "expected identity, got 'gzip'"),
        (post("-1"), 400, "no HTTP"),
        (post("1x"), 400, "no HTTP"),
        (post("5\r\nContent-Length: 6"), 400, "no HTTP"),
        (b"nonsense\r\n\r\n", 400, "no HTTP"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 999 + b"\r\n", 400, "no HTTP"),
        (b"GET /" + b"a" * 99_999 + b" HTTP/1.1\r\n\r\n", 400, "no HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400, "no HTTP"),
    ],
)
def test_a_bad_head_is_answered_before_any_body(plain, data, status, complaint):
    reply = raw(plain, data)  # no body is sent: the reply came without it, and the end
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.split()[1] == b"%d" % status
    assert b"application/json" in head
    assert complaint in json.loads(body)["error"]


def test_a_client_that_asks_first_is_told_to_go_on(plain):
    body = json.dumps({"inputs": [tensor("data", np.ones((1, 20)))]}).encode()
    with socket.create_connection((plain.host, plain.port), timeout=30) as connection:
        connection.sendall(post(len(body), more="Expect: 100-continue\r\n"))
        assert connection.recv(999) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(999).startswith(b"HTTP/1.1 200 OK")
    refused = raw(plain, post(99_999, more="Expect: 100-continue\r\n"))
    assert refused.startswith(b"HTTP/1.1 413")


def test_several_requests_may_be_sent_ahead(plain):
    body = json.dumps({"inputs": [tensor("data", np.ones((1, 20)))]}).encode()
    found = raw(plain, (post(len(body)) + body) * 5)  # closed when idle
    assert found.count(b"HTTP/1.1 200 OK") == 5


# --- slow clients ---------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"GET /v2 HT", b"GET /v2 HTTP/1.1\r\nA: "])
def test_a_head_that_does_not_come_ends_the_connection(plain, sent):
    assert raw(plain, sent) == b""


def test_a_head_that_trickles_ends_the_connection(plain):
    with socket.create_connection((plain.host, plain.port), timeout=30) as connection:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() < began + 20:
                connection.sendall(b"A")
                time.sleep(0.05)
        assert time.monotonic() - began < 10


def test_a_body_that_trickles_is_given_up(plain):
    with socket.create_connection((plain.host, plain.port), timeout=30) as connection:
        connection.sendall(post(900))
        found = b""
        connection.settimeout(0.05)
        for _ in range(400):
            try:
                connection.sendall(b"{")
                found += connection.recv(999)
            except TimeoutError:
                continue
            except OSError:
                break
            if found:
                break
    assert found.startswith(b"HTTP/1.1 408 ")


def test_a_client_that_takes_no_reply_is_cut_off():
    big = tensor("x", np.zeros((1, 1)))
    net = mx.sym.broadcast_axis(mx.sym.Variable("x"), axis=1, size=4_000_000, name="y")
    model = serving.Model(net, {}, {"x": (1,)}, max_batch=1)
    body = json.dumps({"inputs": [big], "parameters": {"binary_data_output": True}}).encode()
    with serving.Server({"m": model}, timeout_s=1) as server:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect((server.host, server.port))
        with connection:
            connection.sendall(post(len(body)) + body)
            time.sleep(2)
            assert len(read_all(connection)) < 15_000_000
        with Client(server) as client:
            eventually(lambda: client.metrics()["gnomon_connections"] == 1)


def test_a_client_that_takes_none_of_many_replies_is_cut_off():
    asked = b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n" * 10_000
    with serving.Server({"m": mlp(np.random.default_rng(0))}, timeout_s=1) as server:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((server.host, server.port))
        with connection, Client(server) as client:
            connection.settimeout(2)
            with contextlib.suppress(OSError):  # it is not read any more
                connection.sendall(asked)
            eventually(lambda: client.metrics()["gnomon_connections"] == 1)
            assert client.metrics()['gnomon_requests_total{model="",status="200"}'] < 5000


# --- full -----------------------------------------------------------------------------------


def test_a_full_queue_refuses(gated):
    server = gated({"queue_limit": 2, "max_batch": 1})
    first = Asking(server)
    assert served.entered.acquire(timeout=30)
    rest = [Asking(server), Asking(server)]
    with Client(server) as client:
        eventually(lambda: client.metrics()['gnomon_queue_length{model="m"}'] == 2)
        status, headers, body = client.ask("POST", "/v2/models/m/infer", BODY)
        assert (status, headers["Retry-After"]) == (429, "1")
        assert json.loads(body)["error"] == "m: 2 requests wait already"
        served.gate.set()
        assert [t.result() for t in (first, *rest)] == [(200, first.told[1])] * 3
        assert first.told[1]["outputs"] == [REPLY]
        assert client.infer("m", X)[0] == 200


def test_one_model_does_not_wait_for_another():
    served.gate.set()
    models = {"m": custom("gate"), "n": mlp(np.random.default_rng(0))}
    with serving.Server(models) as server, Client(server) as client:
        served.gate.clear()
        slow = Asking(server)
        assert client.infer("n", tensor("data", np.ones((1, 20))))[0] == 200
        assert slow.told is None
        served.gate.set()
        assert slow.result()[0] == 200


def test_too_many_connections(gated):
    server = gated(max_connections=2)
    with Client(server) as one, Client(server) as two:
        assert one.get("/v2")[0] == two.get("/v2")[0] == 200
        assert raw(server, b"").startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        one.http.close()
        with Client(server) as three:
            eventually(lambda: three.get("/v2")[0] == 200)


def test_too_many_bytes_under_way(gated):
    server = gated({"max_batch": 1}, max_held_bytes=2 * len(BODY))
    slow = Asking(server)
    assert served.entered.acquire(timeout=30)
    with Client(server) as client:
        status, _, body = client.ask("POST", "/v2/models/m/infer", BODY + b" " * len(BODY))
        assert (status, b"too many bytes" in body) == (503, True)
    served.gate.set()
    assert slow.result()[0] == 200


# --- late, gone, stopped --------------------------------------------------------------------


def test_a_late_result_is_given_up_and_the_next_one_comes(gated):
    server = gated({"max_batch": 1}, timeout_s=0.5)
    with Client(server) as client:
        status, told = client.infer("m", X)
        assert (status, told["error"]) == (504, "m: no result within 0.5 s")
        assert client.infer("m", X)[0] == 504  # it waited in the queue, and left it
        assert client.metrics()['gnomon_queue_length{model="m"}'] == 0
        served.gate.set()
        eventually(lambda: client.infer("m", X)[0] == 200)


def test_a_client_that_goes_away_takes_its_request_along(gated):
    server = gated({"max_batch": 1})
    slow = Asking(server)
    assert served.entered.acquire(timeout=30)
    with Client(server) as client:
        with socket.create_connection((server.host, server.port)) as gone:
            gone.sendall(post(len(BODY)) + BODY)
            eventually(lambda: client.metrics()['gnomon_queue_length{model="m"}'] == 1)
        eventually(lambda: client.metrics()['gnomon_queue_length{model="m"}'] == 0)
        served.gate.set()
        assert slow.result()[0] == 200
        assert client.metrics()['gnomon_requests_total{model="m",status="499"}'] == 1


def test_what_is_under_way_ends_before_the_server_does(gated):
    server = gated({"max_batch": 2, "max_delay_ms": 0}, idle_s=100)
    slow = [Asking(server)]
    assert served.entered.acquire(timeout=30)
    slow += [Asking(server) for _ in range(3)]  # these wait in the queue
    with Client(server) as idle, Client(server) as client:
        assert idle.get("/v2")[0] == 200
        eventually(lambda: client.metrics()['gnomon_queue_length{model="m"}'] == 3)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        eventually(lambda: refuses(server))
        status, told = client.get("/v2/health/ready")
        assert (status, told["error"]) == (503, "the server is stopping")
        served.gate.set()
        assert [t.result()[0] for t in slow] == [200] * 4
        stopping.join(20)
        assert not stopping.is_alive()
        assert idle.http.sock.recv(9) == b""


def refuses(server):
    try:
        socket.create_connection((server.host, server.port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the door was closed at that instant: asked again, it refuses
        return False
    return False


def test_a_server_does_not_wait_for_ever_to_end(gated):
    server = gated(shutdown_s=0.2)
    slow = threading.Thread(target=raw, args=(server, post(len(BODY)) + BODY))
    slow.start()
    assert served.entered.acquire(timeout=30)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 15
    slow.join(10)
    assert not slow.is_alive()


# --- starting -------------------------------------------------------------------------------


def test_a_server_is_ready_when_every_model_is():
    served.gate.clear()
    server = serving.Server({"m": custom("gate"), "n": mlp(np.random.default_rng(0))})
    starting = threading.Thread(target=server.start)
    starting.start()
    try:
        eventually(lambda: server.port)
        eventually(lambda: not refuses(server))
        with Client(server) as client:
            eventually(lambda: client.get("/v2/models/n/ready")[0] == 200)
            assert client.get("/v2/health/live") == (200, {"live": True})
            assert client.get("/v2/health/ready") == (503, {"ready": False})
            assert client.get("/v2/models/m/ready") == (503, {"name": "m", "ready": False})
            assert client.infer("m", X) == (503, {"error": "model 'm' is not ready"})
            served.gate.set()
            starting.join(60)
            assert client.get("/v2/health/ready") == (200, {"ready": True})
    finally:
        served.gate.set()
        server.stop()


def test_a_model_that_cannot_start():
    net = mx.sym.Custom(mx.sym.Variable("x") + 13, op_type="serving_picky", name="y")
    server = serving.Server({"m": serving.Model(net, {}, {"x": (2,)})})
    with pytest.raises(GnomonError, match="thirteen"):
        server.start()
    assert refuses(server)


def test_an_address_that_is_taken(plain):
    server = serving.Server({"m": mlp(np.random.default_rng(0))}, port=plain.port)
    with pytest.raises(GnomonError, match=f":{plain.port}: .*in use"):
        server.start()


def test_a_server_starts_once():
    with (
        serving.Server({"m": mlp(np.random.default_rng(0))}) as server,
        pytest.raises(GnomonError, match="started before"),
    ):
        server.start()
    server.stop()


@pytest.mark.parametrize("given", [{"timeout_s": 0}, {"idle_s": "1"}, {"max_conections": 3}])
def test_limits_out_of_range(given):
    with pytest.raises(ParamError, match=next(iter(given))):
        serving.Server({"m": mlp(np.random.default_rng(0))}, **given)


@pytest.mark.parametrize("models", [{}, {"a/b": None}, {"": None}])
def test_names_of_models(models):
    with pytest.raises(ParamError, match="models by names"):
        serving.Server(models)
