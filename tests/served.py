"""Clients and models for the tests of `gnomon.serving`: plain sockets, and operators that wait."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import threading

import numpy as np

import gnomon as mx
from gnomon import serving

LENGTH = "Inference-Header-Content-Length"
gate = threading.Event()  # what `Gate` waits for
entered = threading.Semaphore(0)  # how often it was entered


@mx.operator.register("serving_gate")
class Gate(mx.operator.CustomOpProp):
    """x, when the gate is open."""

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _Gate()


class _Gate(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        entered.release()
        assert gate.wait(60)
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("serving_picky")
class Picky(mx.operator.CustomOpProp):
    """x, unless a value is 13."""

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _Picky()


class _Picky(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if (in_data[0].asnumpy() == 13).any():
            raise ValueError("thirteen")
        self.assign(out_data[0], req[0], in_data[0])


def custom(name, **options):
    """A model of one of the operators above, whose items are two numbers."""
    net = mx.sym.Custom(mx.sym.Variable("x"), op_type=f"serving_{name}", name="y")
    return serving.Model(net, {}, {"x": (2,)}, **options)


def mlp(rng, sizes=(20, 16, 5), **options):
    """A perceptron with random parameters, and a label as `Module` trains it."""
    x = mx.sym.Variable("data")
    params = {}
    for k, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        x = mx.sym.FullyConnected(mx.sym.tanh(x), num_hidden=outputs, name=f"fc{k}")
        params[f"fc{k}_weight"] = mx.nd.array(rng.normal(0, 1, (outputs, inputs)))
        params[f"fc{k}_bias"] = mx.nd.array(rng.normal(0, 1, outputs))
    net = mx.sym.SoftmaxOutput(x, mx.sym.Variable("softmax_label"), name="softmax")
    return serving.Model(net, params, {"data": (sizes[0],)}, **options)


def tensor(name, values, datatype="FP32"):
    """An entry of a request, with its numbers."""
    values = np.asarray(values)
    data = values.reshape(-1).tolist()
    return {"name": name, "datatype": datatype, "shape": list(values.shape), "data": data}


def binary(name, values, datatype="FP32"):
    """An entry of a request whose bytes come behind, and these."""
    data = values.tobytes()
    parameters = {"binary_data_size": len(data)}
    entry = {"name": name, "datatype": datatype, "shape": list(values.shape)}
    return {**entry, "parameters": parameters}, data


class Client:
    """A connection that stays open."""

    def __init__(self, server, timeout=30):
        self.http = http.client.HTTPConnection(server.host, server.port, timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body of the reply."""
        self.http.request(method, path, body, headers or {})
        reply = self.http.getresponse()
        return reply.status, reply.headers, reply.read()

    def get(self, path):
        """Status and JSON of the reply."""
        status, _, body = self.ask("GET", path)
        return status, json.loads(body)

    def infer(self, model, *inputs, **more):
        """Status and JSON of the reply to a request in JSON."""
        body = json.dumps({"inputs": list(inputs), **more})
        status, _, told = self.ask("POST", f"/v2/models/{model}/infer", body)
        return status, json.loads(told)

    def infer_bytes(self, model, pairs, **more):
        """Status, JSON and the bytes behind it of the reply to a request with bytes."""
        more.setdefault("parameters", {"binary_data_output": True})
        text = json.dumps({"inputs": [entry for entry, _ in pairs], **more}).encode()
        body = text + b"".join(data for _, data in pairs)
        head = {LENGTH: str(len(text))}
        status, headers, told = self.ask("POST", f"/v2/models/{model}/infer", body, head)
        length = int(headers.get(LENGTH, len(told)))
        return status, json.loads(told[:length]), told[length:]

    def metrics(self):
        """Numbers by the names and labels of the metrics."""
        _, _, text = self.ask("GET", "/metrics")
        rows = [line.rpartition(" ") for line in text.decode().splitlines() if line[0] != "#"]
        return {name: float(value) for name, _, value in rows}


def raw(server, data):
    """What the server sends until it closes, to these bytes."""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.sendall(data)
        return read_all(connection)


def read_all(connection):
    """Everything until the other side closes."""
    found = b""
    try:
        while part := connection.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found
