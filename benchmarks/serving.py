"""Models over HTTP: requests a second and latency, beside the models themselves.

    python benchmarks/serving.py

Clients in a process of their own send binary tensors of one item over connections that stay open,
each its next request when it has the reply. Contenders take turns: `gnomon.serving` with and
without batches, and a server of the standard library that computes each request by itself. `loop`
is the model without HTTP, one item at a time; `loop 32` that in batches. Beside rates stands what
the server's processor does for a request: on a machine with other work that tells more.
"""

from __future__ import annotations

import json
import multiprocessing
import selectors
import socket
import statistics
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from measure import arguments, chosen, interpreters

import gnomon as mx
from gnomon import serving

LENGTH = "Inference-Header-Content-Length"
MODELS = {"mlp": (784,), "resnet20": (3, 32, 32)}
LARGEST = 32


def network(name: str) -> Any:
    """The symbol of a model, whose input is `data`."""
    x = mx.sym.Variable("data")
    if name == "mlp":
        for k, hidden in enumerate((128, 64)):
            x = mx.sym.FullyConnected(x, num_hidden=hidden, name=f"fc{k}")
            x = mx.sym.Activation(x, act_type="relu")
        return mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=10, name="out"), name="p")
    x = layer(x, 16, 1, "first")
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(3):
            stride, title = (2 if stage and not block else 1), f"s{stage}b{block}"
            y = layer(layer(x, filters, stride, title + "a"), filters, 1, title + "b")
            x = layer(x, filters, stride, title + "c") if stride == 2 else x
            x = mx.sym.relu(x + y)
    x = mx.sym.Pooling(x, global_pool=True, pool_type="avg", kernel=(1, 1))
    return mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=10, name="out"), name="p")


def layer(x: Any, filters: int, stride: int, name: str) -> Any:
    """A convolution, normalized and cut off at 0."""
    how = {"kernel": (3, 3), "pad": (1, 1), "stride": (stride, stride), "no_bias": True}
    x = mx.sym.Convolution(x, num_filter=filters, name=name, **how)
    return mx.sym.relu(mx.sym.BatchNorm(x, name=name + "n"))


def model(name: str, **options: Any) -> Any:
    """A model with random parameters."""
    net = network(name)
    args, _, states = net.infer_shape(data=(1, *MODELS[name]))
    rng = np.random.default_rng(0)
    every = dict(zip(net.list_arguments(), args, strict=True))
    every |= dict(zip(net.list_auxiliary_states(), states, strict=True))
    params = {n: mx.nd.array(rng.normal(0, 0.1, s)) for n, s in every.items() if n != "data"}
    params |= {n: abs(x) + 0.5 for n, x in params.items() if n.endswith("_var")}
    return serving.Model(net, params, {"data": MODELS[name]}, **options)


# --- servers, each in a process of its own ----------------------------------------------------


def answer(name: str, batch: int | None, pipe: Any) -> None:
    """Serve a model, by `gnomon.serving` or where `batch` is None the standard library."""
    if batch is None:
        server: Any = plain(name)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
    else:
        made = model(name, max_batch=batch)
        server = serving.Server({"m": made})
        server.start()
        port = server.port
    pipe.send(port)
    while pipe.recv():
        pipe.send(time.process_time())


def plain(name: str) -> ThreadingHTTPServer:
    """The least that the standard library needs to serve a model: a thread for a connection."""
    made, lock = model(name).bind(1, (MODELS[name],)), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            head = int(self.headers[LENGTH])
            asked = json.loads(body[:head])["inputs"][0]
            values = np.frombuffer(body[head:], np.float32).reshape(asked["shape"])
            with lock:
                made.inputs["data"][...] = values
                (found,) = made.compute().values()
            told = {"name": "p_output", "datatype": "FP32", "shape": list(found.shape)}
            told["parameters"] = {"binary_data_size": found.nbytes}
            text = json.dumps({"model_name": "m", "outputs": [told]}).encode()
            self.send_response(200)
            self.send_header(LENGTH, str(len(text)))
            self.send_header("Content-Length", str(len(text) + found.nbytes))
            self.end_headers()
            self.wfile.write(text + found.tobytes())
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


# --- clients ----------------------------------------------------------------------------------


def request(name: str) -> bytes:
    """A request of one item."""
    values = np.random.default_rng(1).random((1, *MODELS[name]), np.float32)
    tensor = {"name": "data", "datatype": "FP32", "shape": list(values.shape)}
    tensor["parameters"] = {"binary_data_size": values.nbytes}
    asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    text = json.dumps(asked).encode()
    head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n{LENGTH}: {len(text)}\r\n"
    head += f"Content-Length: {len(text) + values.nbytes}\r\n\r\n"
    return head.encode() + text + values.tobytes()


class Client:
    """Connections to a server, each with a request under way."""

    def __init__(self, port: int, count: int, name: str) -> None:
        self.request = request(name)
        self.selector = selectors.DefaultSelector()
        self.begun: dict[socket.socket, float] = {}
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(connection, selectors.EVENT_READ)
            self.begun[connection] = 0.0

    def run(self, seconds: float) -> list[float]:
        """Latencies of the requests of a turn."""
        end, found = time.perf_counter() + seconds, []
        for connection in self.begun:
            self.send(connection)
        waiting = len(self.begun)
        while waiting:
            for key, _ in self.selector.select():
                receive(key.fileobj)
                now = time.perf_counter()
                found.append(now - self.begun[key.fileobj])
                if now < end:
                    self.send(key.fileobj)
                else:
                    waiting -= 1
        return found

    def send(self, connection: socket.socket) -> None:
        """Begin a request."""
        self.begun[connection] = time.perf_counter()
        connection.sendall(self.request)


def receive(connection: Any) -> None:
    """Read a reply to its end."""
    data = connection.recv(1 << 16)
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), data
    length = int(head.lower().split(b"content-length: ")[-1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(1 << 16)


class Contender:
    """A server of a model, and clients of it."""

    def __init__(self, name: str, batch: int | None, clients: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=answer, args=(name, batch, other), daemon=True)
        self.process.start()
        self.client = Client(self.pipe.recv(), clients, name)

    def turn(self, seconds: float) -> tuple[float, float, list[float]]:
        """Requests a second, the processor's seconds for one, and latencies."""
        spent, begin = self.spent(), time.perf_counter()
        latencies = self.client.run(seconds)
        taken = time.perf_counter() - begin
        return len(latencies) / taken, (self.spent() - spent) / len(latencies), latencies

    def spent(self) -> float:
        """Seconds that the server has computed."""
        self.pipe.send(True)
        return float(self.pipe.recv())

    def close(self) -> None:
        """End the server."""
        self.pipe.send(False)
        self.process.join()


class Loop:
    """The model without HTTP, `rows` items at a time."""

    def __init__(self, name: str, rows: int) -> None:
        self.rows, self.bound = rows, model(name).bind(rows, (MODELS[name],))
        self.values = np.random.default_rng(1).random((rows, *MODELS[name]), np.float32)

    def turn(self, seconds: float) -> tuple[float, float, list[float]]:
        """As a contender's."""
        found, spent, begin = [], time.process_time(), time.perf_counter()
        while not found or time.perf_counter() - begin < seconds:
            now = time.perf_counter()
            self.bound.inputs["data"][...] = self.values
            self.bound.compute()
            found.append(time.perf_counter() - now)
        count = len(found) * self.rows
        taken = time.perf_counter() - begin
        return count / taken, (time.process_time() - spent) / count, found

    def close(self) -> None:
        """Nothing is left open."""


CONTENDERS = {
    "stdlib": lambda name, clients: Contender(name, None, clients),
    "batches": lambda name, clients: Contender(name, LARGEST, clients),
    "no batches": lambda name, clients: Contender(name, 1, clients),
    "loop": lambda name, _: Loop(name, 1),
    "loop 32": lambda name, _: Loop(name, LARGEST),
}


def main() -> None:
    """Print the table, ratios to the standard library's server."""
    options = arguments(__doc__.splitlines()[0])
    options.add_argument("--clients", type=int, nargs="*", default=[1, 32, 100])
    given = options.parse_args()
    interpreters(given)
    print("| model, clients, contender | requests a second | work for one | p50 | p99 |")
    print("|---|---|---|---|---|")
    rows = [f"{name} {clients}" for name in MODELS for clients in given.clients]
    for title in chosen(rows, given.rows):
        name, clients = title.split()
        measure(title, name, int(clients), given)


def measure(title: str, name: str, clients: int, given: Any) -> None:
    """Let the contenders take turns, and print a line for each."""
    contenders = {n: CONTENDERS[n](name, clients) for n in chosen(list(CONTENDERS), given.only)}
    for contender in contenders.values():
        contender.turn(given.block)
    turns: dict[str, list[Any]] = {n: [] for n in contenders}
    for number in range(given.rounds):
        for n in list(contenders)[:: -1 if number % 2 else 1]:
            turns[n].append(contenders[n].turn(given.block))
    first = turns[next(iter(turns))]
    for n, found in turns.items():
        rates, work = [t[0] for t in found], [t[1] for t in found]
        times = sorted(t for turn in found for t in turn[2])
        ratio = statistics.median(a / b[0] for a, b in zip(rates, first, strict=True))
        low, high = (1000 * times[int(q * (len(times) - 1))] for q in (0.5, 0.99))
        cells = (
            f"{statistics.median(rates):.0f} ({ratio:.2f}) | {statistics.median(work) * 1e6:.0f} us"
        )
        print(f"| {title}, {n} | {cells} | {low:.2f} ms | {high:.2f} ms |", flush=True)
    for contender in contenders.values():
        contender.close()


if __name__ == "__main__":
    main()
