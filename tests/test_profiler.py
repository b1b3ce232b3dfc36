"""Profiles: what is recorded, the table, and a trace whose every begin has its end."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon import profiler
from gnomon.base import GnomonError, ParamError
from gnomon.profiler import control
from gnomon.profiler.record import Count, Record, Span, Stretch
from gnomon.profiler.trace import trace
from gnomon.runtime.execution import stream


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    """A profiler of one's own for each test, writing into the test's folder."""
    before = dict(control.PROFILER.config)
    profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(tmp_path / "p.json"))
    control.PROFILER.record = Record()
    yield
    profiler.set_state("stop")
    profiler.resume()
    control.PROFILER.record = Record()
    control.PROFILER.config.update(before)


NUMBER, TEXT, INTEGER = (int, float), (str,), (int,)
COMMON = {"ph": TEXT, "name": TEXT, "pid": INTEGER, "tid": INTEGER}
TIMED = {**COMMON, "cat": TEXT, "ts": NUMBER}
FIELDS = {  # by phase, as the Trace Event Format has them: those that must be there
    "M": {**COMMON, "args": (dict,)},
    "B": TIMED,
    "E": TIMED,
    "b": {**TIMED, "id": TEXT},
    "e": {**TIMED, "id": TEXT},
    "i": {**TIMED, "s": TEXT},
    "C": {**TIMED, "args": (dict,)},
}


def valid(text):
    """A trace's text, read as strictly as any reader may, with each event as the format says."""

    def refused(word):
        raise ValueError(f"JSON has no {word}")

    def once(pairs):
        assert len({k for k, _ in pairs}) == len(pairs)
        return dict(pairs)

    found = json.loads(text, parse_constant=refused, object_pairs_hook=once)
    assert found.keys() == {"traceEvents", "displayTimeUnit"}
    assert found["displayTimeUnit"] in ("ms", "ns")
    for event in found["traceEvents"]:
        fields = FIELDS[event["ph"]]
        assert fields.keys() <= event.keys() <= {*fields, "args"}
        for name, kinds in fields.items():
            assert isinstance(event[name], kinds), (name, event)
            assert not isinstance(event[name], bool)
        assert event.get("ts", 0) >= 0
        assert event.get("s", "t") in ("g", "p", "t")
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
        if event["ph"] == "C":
            assert event["args"]
            assert all(isinstance(v, NUMBER) for v in event["args"].values())
    return found


def written():
    """The trace's file, checked: each begin has its end, properly nested, in order of time."""
    found = valid(Path(control.PROFILER.config["filename"]).read_text(encoding="utf-8"))
    check(found)
    return found["traceEvents"]


def check(found):
    open_, last, waiting = {}, 0.0, set()
    named = {(e["pid"], e["tid"]) for e in found["traceEvents"] if e["name"] == "thread_name"}
    assert [e["args"]["name"] for e in found["traceEvents"] if e["name"] == "process_name"]
    for event in found["traceEvents"]:
        if event["ph"] == "M":
            continue
        assert event["ts"] >= last
        last = event["ts"]
        where = event["pid"], event["tid"]
        if event["ph"] == "B":
            assert where in named
            open_.setdefault(where, []).append(event["name"])
        elif event["ph"] == "E":
            assert open_[where].pop() == event["name"]
        elif event["ph"] == "b":
            waiting.add((event["cat"], event["id"]))
        elif event["ph"] == "e":
            waiting.remove((event["cat"], event["id"]))
        else:
            assert event["ph"] in "Ci"
    assert not any(open_.values())
    assert not waiting


def network():
    x = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=4, name="fc")
    net = mx.sym.SoftmaxOutput(mx.sym.tanh(x), name="softmax")
    bound = net.simple_bind(mx.cpu(), x=(2, 3))
    bound.forward(is_train=True)
    mx.nd.waitall()
    return bound


def test_operators_on_arrays_are_recorded():
    profiler.set_state("run")
    (mx.nd.ones((4, 5)) * 2).asnumpy()
    profiler.set_state("stop")
    mx.nd.zeros((3,)).asnumpy()
    text = profiler.dumps()
    assert "Profile Statistics:" in text
    assert "operator\n====" in text
    assert "_ones" in text
    assert "_zeros" not in text
    assert "Memory: cpu/0" in text


def test_a_program_shows_its_kernels_within_its_operation():
    bound = network()
    profiler.set_state("run")
    bound.forward_backward()
    mx.nd.waitall()
    profiler.set_state("stop")
    profiler.dump()
    events = written()
    operation = next(e for e in events if e["name"] == "forward and backward" and e["ph"] == "B")
    kernels = [e for e in events if e["cat" if "cat" in e else "name"] == "kernel"]
    assert len(kernels) >= 4
    assert all(e["ts"] >= operation["ts"] for e in kernels)
    assert any("fc" in e["name"] for e in kernels)
    assert any(e.get("args", {}).get("bytes", 0) > 0 for e in kernels)


def test_work_behind_the_program_is_on_a_track_of_its_own():
    x = mx.nd.ones((700, 700))
    x.wait_to_read()
    profiler.set_state("run")
    begin = control.now()
    y = mx.nd.dot(x, x)
    y.wait_to_read()
    end = control.now()
    profiler.set_state("stop")
    record = control.PROFILER.record
    spans = [e for e in record.events if isinstance(e, Span) and e.category == "operator"]
    (span,) = [e for e in spans if e.name == "dot"]
    assert begin <= span.begin <= span.end <= end
    if stream.available():
        assert record.threads[span.thread] == "stream"


def test_results_are_the_same_while_a_profile_runs():
    bound = network()
    expected = bound.forward(is_train=True)[0].asnumpy()
    bound.backward()
    gradient = bound.grad_dict["fc_weight"].asnumpy()
    profiler.set_state("run")
    np.testing.assert_array_equal(bound.forward(is_train=True)[0].asnumpy(), expected)
    bound.backward()
    np.testing.assert_array_equal(bound.grad_dict["fc_weight"].asnumpy(), gradient)


def test_kinds_are_recorded_as_asked():
    bound = network()
    for kind, other in (("symbolic", "imperative"), ("imperative", "symbolic")):
        wishes = {f"profile_{kind}": True, f"profile_{other}": False, "profile_memory": False}
        profiler.set_config(profile_all=False, **wishes)
        profiler.set_state("run")
        bound.forward(is_train=True)
        mx.nd.ones((2,)).asnumpy()
        mx.nd.waitall()
        profiler.set_state("stop")
        names = {e.name for e in control.PROFILER.record.events}
        assert ("forward" in names) == (kind == "symbolic")
        assert ("_ones" in names) == (kind == "imperative")
        assert not any(isinstance(e, Count) for e in control.PROFILER.record.events)
        control.PROFILER.record = Record()


def test_pausing():
    profiler.set_state("run")
    profiler.pause()
    mx.nd.ones((2,)).asnumpy()
    profiler.resume()
    mx.nd.zeros((2,)).asnumpy()
    names = {e.name for e in control.PROFILER.record.events}
    assert "_zeros" in names
    assert "_ones" not in names


def test_what_users_put_in():
    profiler.set_state("run")
    domain = profiler.Domain("mine")
    task, frame, event = domain.new_task("task"), domain.new_frame("frame"), profiler.Event("event")
    for each in (task, frame, event):
        each.start()
    counter = domain.new_counter("counter", 3)
    counter += 4
    counter -= 1
    counter.increment()
    counter.decrement(2)
    assert counter.value == 5
    for scope in ("global", "process", "thread", "task", "marker"):
        domain.new_marker("marker").mark(scope)
    for each in (task, event, frame):  # tasks may overlap in any way
        each.stop()
    with profiler.scope("outer"), profiler.scope("inner"):
        mx.nd.ones((2,)).asnumpy()
    profiler.dump()
    events = written()
    values = [e["args"]["counter"] for e in events if e["name"] == "counter"]
    assert values == [3, 7, 6, 7, 5]
    assert {e["s"] for e in events if e["ph"] == "i"} == {"g", "p", "t"}
    names = {e["name"] for e in events}
    assert {"task", "frame", "event", "outer:", "outer:inner:"} <= names
    found = json.loads(profiler.dumps(format="json"))
    assert found["Time"]["mine"]["task"]["Count"] == 1
    assert found["Unit"] == {"Time": "ms", "Memory": "kB"}
    with pytest.raises(GnomonError, match="stop comes after start"):
        task.stop()
    with pytest.raises(ParamError, match=r"Marker.mark: argument 'scope'.*'nowhere'"):
        domain.new_marker("m").mark("nowhere")
    with pytest.raises(TypeError, match="a string"):
        profiler.Domain(3)


def test_threads_have_names():
    profiler.set_state("run")
    thread = threading.Thread(target=lambda: mx.nd.ones((2,)).asnumpy(), name="reader")
    thread.start()
    thread.join()
    mx.nd.ones((2,)).asnumpy()
    profiler.dump()
    names = {e["args"]["name"] for e in written() if e["name"] == "thread_name"}
    assert {"reader", "MainThread"} <= names


def test_the_table_is_sorted_and_forgotten():
    record = control.PROFILER.record
    record.events += [Span("operator", n, 1, 0.0, t) for n, t in (("a", 1), ("b", 3), ("b", 1))]
    record.events.append(Stretch("mine", "t", 0.0, 2.0))
    found = json.loads(profiler.dumps(format="json"))["Time"]
    assert list(found["operator"]) == ["b", "a"]
    assert found["operator"]["b"] == {
        "Count": 2, "Total": 4000.0, "Min": 1000.0, "Max": 3000.0, "Avg": 2000.0
    }  # fmt: skip
    text = profiler.dumps(sort_by="count", ascending=True)
    assert text.index("\na ") < text.index("\nb ")
    profiler.dumps(reset=True)
    assert json.loads(profiler.dumps(format="json"))["Time"] == {}
    assert len(record.events) == 4  # for the trace
    with pytest.raises(ParamError, match="sort_by"):
        profiler.dumps(sort_by="name")
    with pytest.raises(ParamError, match="format"):
        profiler.dumps(format="xml")
    profiler.set_config(aggregate_stats=False)
    assert profiler.dumps() == ""


def test_spans_that_touch_or_outlast_each_other_nest():
    spans = [
        Span("x", "outer", 1, 0.0, 1.0),
        Span("x", "late", 1, 0.5, 2.0),
        Span("x", "nothing", 1, 1.0, 1.0),
        Span("x", "next", 1, 1.0, 1.5),
        Span("x", "elsewhere", 2, 0.2, 3.0),
    ]
    check(trace(Record(spans, {1: "a", 2: "b"})))
    assert trace(Record())["displayTimeUnit"] == "ms"


def test_counts_of_any_kind_are_written_as_numbers():
    counter = profiler.Counter(profiler.Domain("mine"), "queued \udcff\n")
    profiler.set_state("run")
    for value in (3, 2.5, np.float32(1.5), np.int64(7), True, float("nan"), float("inf")):
        counter.set_value(value)
    profiler.set_state("stop")
    profiler.dump()
    values = [
        v for e in written() if e["ph"] == "C" for v in e["args"].values() if e["cat"] == "mine"
    ]
    assert values == [3, 2.5, 1.5, 7, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"filenam": "x"}, "did you mean 'filename'"),
        ({"filename": 3}, "expected a string, got 3"),
        ({"profile_all": "yes"}, "True or False"),
        ({"dump_period": 0}, "seconds above 0"),
        ({"profile_process": "server"}, "there are no servers"),
    ],
)
def test_settings_are_checked(given, message):
    before = dict(control.PROFILER.config)
    with pytest.raises(ParamError, match=message):
        profiler.set_config(**given)
    assert control.PROFILER.config == before


def test_states_and_processes_are_checked():
    with pytest.raises(ParamError, match="'started'"):
        profiler.set_state("started")
    for function in (profiler.set_state, profiler.dump, profiler.pause, profiler.resume):
        with pytest.raises(ParamError, match="no servers"):
            function(profile_process="server")


def test_a_file_that_cannot_be_written():
    profiler.set_config(filename="/nowhere/at/all.json")
    with pytest.raises(GnomonError, match=r"profiler.dump: cannot write '/nowhere/at/all.json'"):
        profiler.dump()


def test_old_names():
    name = control.PROFILER.config["filename"]
    profiler.profiler_set_config("all", name)
    profiler.profiler_set_state("run")
    mx.nd.ones((2,)).asnumpy()
    profiler.dump_profile()
    assert any(e["name"] == "_ones" for e in written())
    with pytest.raises(ParamError, match="mode"):
        profiler.profiler_set_config("some")


def test_continuous_dumps():
    profiler.set_config(continuous_dump=True, dump_period=0.01)
    profiler.set_state("run")
    mx.nd.ones((2,)).asnumpy()
    end = time.monotonic() + 20
    while not Path(control.PROFILER.config["filename"]).exists() and time.monotonic() < end:
        time.sleep(0.01)
    profiler.set_state("stop")
    assert "profiler" not in {t.name for t in threading.enumerate()}
    written()


def test_continuous_dumps_go_on_where_the_file_cannot_be_written(tmp_path, caplog):
    folder = tmp_path / "later"
    profiler.set_config(continuous_dump=True, dump_period=0.01, filename=str(folder / "p.json"))
    profiler.set_state("run")
    end = time.monotonic() + 20
    while "profiler.dump: cannot write" not in caplog.text and time.monotonic() < end:
        time.sleep(0.01)
    folder.mkdir()
    while not (folder / "p.json").exists() and time.monotonic() < end:
        time.sleep(0.01)
    profiler.set_state("stop")
    assert "profiler.dump: cannot write" in caplog.text
    written()


def test_profiles_from_the_start(tmp_path):
    code = "import gnomon as mx; mx.nd.ones((2, 3)).asnumpy()"
    environment = {**os.environ, "MXNET_PROFILER_AUTOSTART": "1"}
    environment["PYTHONPATH"] = str(Path(mx.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    found = json.loads((tmp_path / "profile.json").read_text())
    check(found)
    assert any(e["name"] == "_ones" for e in found["traceEvents"])


def test_a_run_after_a_pause_records_again():
    profiler.set_state("run")
    profiler.pause()
    profiler.set_state("stop")
    profiler.set_state("run")
    mx.nd.zeros((2,)).asnumpy()
    profiler.set_state("stop")
    assert "_zeros" in {e.name for e in control.PROFILER.record.events}


def test_operators_that_users_write_have_a_category_of_their_own():
    class Doubled(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.nd.exp(in_data[0]))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], mx.nd.sin(out_grad[0]))

    @mx.operator.register("profiled")
    class DoubledProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Doubled()

    x = mx.nd.ones((2,))
    x.attach_grad()
    profiler.set_state("run")
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="profiled")
    y.backward()
    profiler.set_state("stop")
    spans = control.PROFILER.record.events
    names = {e.name for e in spans if getattr(e, "category", "") == "Custom Operator"}
    expected = {"profiled::pure_python", "profiled::exp"}
    expected |= {"_backward_profiled::pure_python", "_backward_profiled::sin"}
    assert expected <= names
    mx.nd.cos(x).asnumpy()
    assert not any("profiled::cos" in e.name for e in spans)
