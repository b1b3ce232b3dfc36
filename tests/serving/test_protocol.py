"""The v2 inference protocol over real sockets: metadata, tensors both ways, errors that say why."""

import json

import numpy as np
import pytest
from served import LENGTH, Client, binary, mlp, tensor

import gnomon as mx
from gnomon import serving
from gnomon.serving import tensors

DTYPES = {
    "FP64": "float64",
    "FP32": "float32",
    "FP16": "float16",
    "BF16": "bfloat16",
    "INT64": "int64",
    "INT32": "int32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}


def numpy_of(datatype):
    return tensors._NAMES[datatype].numpy


def models():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    both = mx.sym.Group([mx.sym.broadcast_add(x, y, name="sum"), mx.sym.square(y, name="square")])
    same = {
        name: serving.Model(mx.sym.identity(x, name="y"), {}, {"x": (3,)}, {"x": kind})
        for name, kind in DTYPES.items()
    }
    made = {
        "mlp": mlp(np.random.default_rng(0), version="7"),
        "both": serving.Model(both, {}, {"x": (2, 1), "y": (2, 3)}),
        "whole": serving.Model(mx.sym.sum(x, name="s"), {}, {"x": (2, 3)}, batch=False),
        "any": serving.Model(mx.sym.sum(x, axis=2, name="s"), {}, {"x": (2, -1)}),
    }
    return made | same


@pytest.fixture(scope="module")
def server():
    with serving.Server(models()) as made:
        yield made


@pytest.fixture
def client(server):
    with Client(server) as made:
        yield made


def test_metadata(client):
    status, told = client.get("/v2")
    assert (status, told["name"], told["extensions"]) == (200, "gnomon", ["binary_tensor_data"])
    assert client.get("/v2/health/live") == (200, {"live": True})
    assert client.get("/v2/health/ready") == (200, {"ready": True})
    assert client.get("/v2/models")[1]["models"][:2] == ["mlp", "both"]
    assert client.get("/v2/models/mlp/ready") == (200, {"name": "mlp", "ready": True})
    expected = {
        "name": "mlp",
        "versions": ["7"],
        "platform": "mxnet_gnomon",
        "inputs": [{"name": "data", "datatype": "FP32", "shape": [-1, 20]}],
        "outputs": [{"name": "softmax_output", "datatype": "FP32", "shape": [-1, 5]}],
    }
    for path in ("/v2/models/mlp", "/v2/models/mlp/versions/7"):
        assert client.get(path) == (200, expected)
    _, told = client.get("/v2/models/any")
    assert told["inputs"][0]["shape"] == [-1, 2, -1]
    assert told["outputs"][0]["shape"] == [-1, 2]
    _, told = client.get("/v2/models/whole")
    assert told["inputs"][0]["shape"] == [2, 3]


def test_a_head_has_no_body(client):
    status, headers, body = client.ask("HEAD", "/v2/models/mlp")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 100
    assert client.get("/v2")[0] == 200  # the connection goes on


def test_outputs_ids_and_versions(client):
    x, y = np.ones((1, 2, 1)), np.arange(6).reshape(1, 2, 3)
    given = tensor("y", y), tensor("x", x)  # in any order
    status, told = client.infer("both", *given, id="a b")
    assert (status, told["id"], told["model_version"]) == (200, "a b", "1")
    assert [row["name"] for row in told["outputs"]] == ["sum_output", "square_output"]
    assert told["outputs"][0] == tensor("sum_output", (x + y).astype(np.float32))
    status, told = client.infer("both", *given, outputs=[{"name": "square_output"}])
    assert told["outputs"] == [tensor("square_output", (y**2).astype(np.float32))]
    assert "id" not in told
    body = json.dumps({"inputs": [tensor("data", np.ones((1, 20)))]})
    assert client.ask("POST", "/v2/models/mlp/versions/7/infer", body)[0] == 200
    assert client.ask("POST", "/v2/models/mlp/versions/8/infer", body)[0] == 404


def test_numbers_may_be_nested(client):
    entry = tensor("y", np.ones((1, 2, 3)))
    entry["data"] = [[[1, 2, 3], [4, 5, 6]]]
    _, told = client.infer("both", tensor("x", np.zeros((1, 2, 1))), entry)
    assert told["outputs"][0]["data"] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("datatype", DTYPES)
def test_a_dtype_goes_both_ways_in_json_and_as_bytes(client, datatype):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(numpy_of(datatype))
    if datatype[:2] in ("FP", "BF"):
        values = (values.astype(np.float32) * 3.3e4).astype(numpy_of(datatype))
    listed = tensors.to_json(values)
    entry = {"name": "x", "datatype": datatype, "shape": [2, 3], "data": listed}
    status, told = client.infer(datatype, entry)
    assert status == 200, told
    assert told["outputs"] == [{**entry, "name": "y_output"}]
    status, told, data = client.infer_bytes(datatype, [binary("x", values, datatype)])
    assert (status, data) == (200, values.tobytes())
    assert told["outputs"][0]["parameters"] == {"binary_data_size": len(data)}
    assert told["outputs"][0]["datatype"] == datatype


def test_json_in_bytes_out_and_the_reverse(client):
    values = np.arange(3, dtype=np.float32).reshape(1, 3)
    wanted = [{"name": "y_output", "parameters": {"binary_data": True}}]
    status, headers, told = client.ask(
        "POST",
        "/v2/models/FP32/infer",
        json.dumps({"inputs": [tensor("x", values)], "outputs": wanted}),
    )
    assert (status, told[int(headers[LENGTH]) :]) == (200, values.tobytes())
    assert headers["Content-Type"] == "application/octet-stream"
    status, told, rest = client.infer_bytes("FP32", [binary("x", values)], parameters={})
    assert (status, rest, told["outputs"][0]["data"]) == (200, b"", [0, 1, 2])


def test_tensors_behind_the_json_have_the_order_of_the_request(client):
    x, y = np.full((2, 2, 1), 5, np.float32), np.ones((2, 2, 3), np.float32)
    pairs = [binary("y", y), binary("x", x)]
    _, told, data = client.infer_bytes("both", pairs)
    assert [row["name"] for row in told["outputs"]] == ["sum_output", "square_output"]
    assert np.frombuffer(data, np.float32).tolist() == [6] * 12 + [1] * 12


def test_what_is_not_finite_goes_both_ways(client):
    values = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    status, told = client.infer("FP32", tensor("x", values))
    assert status == 200
    np.testing.assert_array_equal(told["outputs"][0]["data"], values[0])


def test_without_a_batch_and_with_sizes_of_the_request(client):
    _, told = client.infer("whole", tensor("x", np.ones((2, 3))))
    assert told["outputs"][0]["data"] == [6]
    for size in (1, 4, 9):
        _, told = client.infer("any", tensor("x", np.ones((3, 2, size))))
        assert told["outputs"][0]["shape"] == [3, 2]
        assert told["outputs"][0]["data"] == [size] * 6


X = tensor("data", np.ones((1, 20)))
LONG = "-" * 999


@pytest.mark.parametrize(
    ("inputs", "more", "complaint"),
    [
        ([], {}, "mlp: argument 'data': expected a tensor, got none"),
        ([{**X, "name": "dat"}], {}, "expected names among data; did you mean 'data'?, got 'dat'"),
        ([{**X, "name": LONG}], {}, "got '----"),
        ([{**X, "name": [1]}], {}, "expected names among data, got [1]"),
        ([X, X], {}, "'inputs': expected each name once, got 'data' twice"),
        ([3], {}, "'inputs': expected a list of objects, got 3"),
        ([{**X, "datatype": "INT64"}], {}, "'data': expected datatype FP32, got 'INT64'"),
        ([{**X, "datatype": None}], {}, "'data': expected datatype FP32, got None"),
        ([{**X, "shape": [1, 21]}], {}, "expected shape [-1, 20] (-1 is any size from 1), got"),
        ([{**X, "shape": [0, 20]}], {}, "got shape [0, 20]"),
        ([{**X, "shape": [True, 20]}], {}, "got shape [True, 20]"),
        ([{**X, "shape": [1, 2, 10]}], {}, "got shape [1, 2, 10]"),
        ([{**X, "shape": 20}], {}, "got shape 20"),
        ([{**X, "shape": [10**30, 20]}], {}, "expected numbers of shape [1000"),
        ([{**X, "data": [1] * 19}], {}, "expected numbers of shape [1, 20], nested or in one list"),
        ([{**X, "data": [[1], [1, 2]]}], {}, "got [[1], [1, 2]]"),
        ([{**X, "data": ["1"] * 20}], {}, "expected numbers that FP32 holds, got ['1'"),
        ([{**X, "data": [None] * 20}], {}, "expected numbers that FP32 holds, got [None"),
        ([{**X, "data": 1}], {}, "got 1"),
        ([{**X, "shape": [33, 20], "data": [1] * 660}], {}, "expected at most 32 items, got 33"),
        ([X], {"id": 3}, "'id': expected a string, got 3"),
        ([X], {"parameters": []}, "'parameters': expected an object, got []"),
        ([X], {"outputs": [{"name": "softmax"}]}, "'outputs': expected names among softmax_output"),
        ([X], {"outputs": {}}, "'outputs': expected a list, got {}"),
        ([{**X, "parameters": {"binary_data_size": 80}}], {}, "of at most 0, what the body has"),
        ([{**X, "parameters": {"binary_data_size": "a"}}], {}, "got 'a'"),
    ],
)
def test_a_bad_request_is_told_what_was_expected(client, inputs, more, complaint):
    status, told = client.infer("mlp", *inputs, **more)
    assert status == 400
    assert told["error"].startswith("mlp: argument ")
    assert complaint in told["error"]
    assert len(told["error"]) < 400


@pytest.mark.parametrize(
    ("datatype", "data", "got"),
    [
        ("UINT8", [0, 1, 256], "numbers that UINT8 holds"),
        ("UINT8", [0, 1, -1], "numbers that UINT8 holds"),
        ("INT64", [0, 1, 2**63], "numbers that INT64 holds"),
        ("INT64", [0, 1, 1.5], "numbers that INT64 holds"),
        ("BOOL", [0, 1, 1], "truths that BOOL holds"),
        ("FP32", [True] * 3, "numbers that FP32 holds"),
    ],
)
def test_numbers_that_a_dtype_does_not_hold(client, datatype, data, got):
    status, told = client.infer(datatype, {**tensor("x", [[0] * 3], datatype), "data": data})
    assert (status, got in told["error"]) == (400, True)


def test_bad_bytes(client):
    good, data = binary("x", np.ones((1, 3), np.float32))
    for pairs, got in (
        ([(good, data[:-1])], "binary_data_size of at most 11, what the body has, got 12"),
        ([(good, data + b"x")], "expected 12 of binary data, got 13 bytes behind the JSON"),
        ([({**good, "shape": [2, 3]}, data)], "expected 24 bytes for shape [2, 3] of FP32, got"),
        ([({**good, "data": [1]}, data)], "expected data or binary_data_size, got both"),
    ):
        status, told, _ = client.infer_bytes("FP32", pairs)
        assert status == 400
        assert got in told["error"]
    entry, _ = binary("x", np.ones((1, 3), bool), "BOOL")
    status, told, _ = client.infer_bytes("BOOL", [(entry, b"\0\1\2")])
    assert (status, "bytes 0 and 1 for BOOL" in told["error"]) == (400, True)
    for length in ("-1", "99999", "x", "", "1" * 50, "٣"):
        head = {LENGTH: length.encode()}
        status, _, _ = client.ask("POST", "/v2/models/FP32/infer", b"{}", head)
        assert status == 400


def test_items_must_be_equally_many(client):
    given = tensor("x", np.ones((1, 2, 1))), tensor("y", np.ones((2, 2, 3)))
    status, told = client.infer("both", *given)
    assert status == 400
    assert told["error"] == "both: argument 'y': expected 1 items, as 'x' has, got 2"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v3", 404),
        ("GET", "/v2/models/nope", 404),
        ("GET", "/v2/models/mlp/nope", 404),
        ("GET", "/v2/models/mlp/versions", 404),
        ("GET", "/v2/models/mlp/versions/6/ready", 404),
        ("POST", "/v2/models/nope/infer", 404),
        ("GET", "/v2/models/mlp/infer", 405),
        ("POST", "/v2/models/mlp", 405),
        ("DELETE", "/v2", 405),
        ("POST", "/v2/models/%6Dlp/infer", 400),
        ("POST", "/v2/models/%FF%00/infer", 404),
    ],
)
def test_paths(server, method, path, status):
    with Client(server) as client:
        found, headers, body = client.ask(method, path, b"" if method == "POST" else None)
    assert found == status
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["error"]
