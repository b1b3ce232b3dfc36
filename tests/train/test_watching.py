"""Callbacks, the monitor and summaries say what they should."""

import logging
import re

import pytest
from golden.training import branching, perceptron

import gnomon as mx
from gnomon import callback, visualization
from gnomon.model import BatchEndParam


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO)
    return lambda: [re.sub(r"Speed: [\d.]+", "Speed: N", each) for each in caplog.messages]


def metric():
    made = mx.metric.create(["acc", "ce"])
    made.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.2, 0.8]])])
    return made


def test_speed(log):
    speed, watched = callback.Speedometer(10, 2), metric()
    for epoch in range(2):
        for batch in range(5):
            speed(BatchEndParam(epoch, batch, watched if epoch == 0 else None, None))
    assert log() == [
        "Epoch[0] Batch [0-2]\tSpeed: N samples/sec\taccuracy=1.000000\tcross-entropy=0.164252",
        "Epoch[0] Batch [2-4]\tSpeed: N samples/sec\taccuracy=nan\tcross-entropy=nan",
        "Iter[1] Batch [2]\tSpeed: N samples/sec",
        "Iter[1] Batch [4]\tSpeed: N samples/sec",
    ]


def test_speed_without_reset(log):
    speed, watched = callback.Speedometer(10, 2, auto_reset=False), metric()
    for batch in range(5):
        speed(BatchEndParam(0, batch, watched, None))
    assert [line.split("\t")[0] for line in log()] == [
        "Epoch[0] Batch [0-2]",
        "Epoch[0] Batch [0-4]",
    ]
    assert "accuracy=1.000000" in log()[1]


def test_progress(log):
    bar = callback.ProgressBar(total=4, length=10)
    for batch in range(5):
        bar(BatchEndParam(0, batch, None, None))
    assert [line.strip() for line in log()] == [
        "[----------] 0%",
        "[==--------] 25%",
        "[=====-----] 50%",
        "[========--] 75%",
        "[==========] 100%",
    ]


def test_metrics_in_the_log(log):
    training, watched = callback.log_train_metric(2, auto_reset=True), metric()
    callback.LogValidationMetricsCallback()(BatchEndParam(3, 1, watched, None))
    callback.LogValidationMetricsCallback()(BatchEndParam(3, 1, None, None))
    for batch in range(3):
        training(BatchEndParam(3, batch, watched, None))
    assert log() == [
        "Epoch[3] Validation-accuracy=1.000000",
        "Epoch[3] Validation-cross-entropy=0.164252",
        "Iter[3] Batch[0] Train-accuracy=1.000000",
        "Iter[3] Batch[0] Train-cross-entropy=0.164252",
        "Iter[3] Batch[2] Train-accuracy=nan",
        "Iter[3] Batch[2] Train-cross-entropy=nan",
    ]


def module():
    made = mx.mod.Module(perceptron(mx.sym))
    made.bind([("data", (2, 4))], [("softmax_label", (2,))])
    made.init_params(mx.init.One())
    made.init_optimizer()
    return made


def test_checkpoints_while_training(tmp_path):
    own = callback.do_checkpoint(str(tmp_path / "a"), 2)
    whole = callback.module_checkpoint(module(), str(tmp_path / "b"), 2, True)
    for epoch in range(4):
        own(epoch, perceptron(mx.sym), {"fc1_bias": mx.nd.ones((6,))}, {})
        whole(epoch)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "a-0002.params",
        "a-0004.params",
        "a-symbol.json",
        "b-0002.params",
        "b-0002.states",
        "b-0004.params",
        "b-0004.states",
        "b-symbol.json",
    ]


BATCH = mx.io.DataBatch([mx.nd.ones((2, 4))], [mx.nd.ones((2,))])


def test_monitor(log):
    watched, monitor = module(), mx.mon.Monitor(2, pattern="fc1.*|softmax_output")
    watched.install_monitor(monitor)
    seen = []
    for _ in range(3):
        monitor.tic()
        watched.forward(BATCH)
        seen.append(monitor.toc())
    assert seen[1] == []
    assert seen[0] == [
        (1, "fc1_output", "4.0\t"),
        (1, "softmax_output", "0.33333334\t"),
        (1, "fc1_weight", "1.0\t"),
        (1, "fc1_bias", "0.0\t"),
    ]
    assert [(3, *each[1:]) for each in seen[0]] == seen[2]
    watched.forward(BATCH)
    monitor.tic()
    monitor.tic()
    watched.forward(BATCH)
    monitor.toc_print()
    assert log()[0] == "Batch:       5 fc1_output                     4.0\t"


def test_monitor_with_another_statistic():
    watched = module()
    monitor = mx.mon.Monitor(1, stat_func=lambda x: [x.max(), x.min()], sort=True)
    watched.install_monitor(monitor)
    monitor.tic()
    watched.forward_backward(BATCH)
    seen = monitor.toc()
    assert [name for _, name, _ in seen] == sorted(name for _, name, _ in seen)
    assert (1, "fc1_output", "4.0\t4.0\t") in seen
    monitor = mx.mon.Monitor(1, stat_func=lambda x: 3)
    watched.install_monitor(monitor)
    monitor.tic()
    watched.forward(BATCH)
    with pytest.raises(TypeError, match="stat_func"):
        monitor.toc()


def test_summary_counts_what_is_trained(capsys):
    net = mx.sym.Deconvolution(
        mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, num_group=2, name="up"
    )
    visualization.print_summary(net, {"data": (1, 6, 5, 5)})
    assert f"Total params: {6 * 2 * 9}" in capsys.readouterr().out
    visualization.print_summary(net)
    assert "Total params: 0" in capsys.readouterr().out
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4)
    net = mx.sym.BatchNorm(mx.sym.Convolution(net, kernel=(1, 1), num_filter=4, no_bias=True))
    net = mx.sym.FullyConnected(net, num_hidden=10)
    visualization.print_summary(net)  # of no shapes: the biases, as MXNet
    assert "Total params: 14" in capsys.readouterr().out
    net = mx.sym.SoftmaxOutput(net, mx.sym.Variable("classes"))
    visualization.print_summary(net, {"data": (2, 1, 8, 8)})  # the label is no parameter
    assert f"Total params: {40 + 16 + 8 + 10 * 4 * 36 + 10}" in capsys.readouterr().out
    with pytest.raises(TypeError, match="Symbol"):
        visualization.print_summary("net")


class Drawing:
    """Stands for graphviz.Digraph: writes down what is drawn."""

    def __init__(self, name, format):
        self.file = (name, format)
        self.nodes, self.edges = {}, []

    def node(self, name, label, **style):
        self.nodes[name] = (label, style["shape"], style["fillcolor"])

    def edge(self, tail, head, label, **style):
        self.edges.append((tail, head, label))


def test_drawing(monkeypatch):
    fake = type("graphviz", (), {"Digraph": Drawing})
    monkeypatch.setattr(visualization, "graphviz", fake)
    drawn = visualization.plot_network(branching(mx.sym), shape={"data": (2, 1, 8, 8)})
    assert drawn.file == ("plot", "pdf")
    assert drawn.nodes["data"] == ("data", "oval", "#8dd3c7")
    assert drawn.nodes["conv1"] == ("Convolution\n3x3/1, 8", "box", "#fb8072")
    assert drawn.nodes["pool1"] == ("Pooling\nmax, 2x2/2x2", "box", "#80b1d3")
    assert drawn.nodes["left"][0] == "FullyConnected\n10"
    assert drawn.nodes["relu1"][0] == "Activation\nrelu"
    assert not any("weight" in name or "moving" in name for name in drawn.nodes)
    assert ("conv1", "data", "1x8x8") in drawn.edges
    assert ("bn", "conv1", "8x6x6") in drawn.edges
    whole = visualization.plot_network(branching(mx.sym), hide_weights=False)
    assert "conv1_weight" in whole.nodes


# What the real library and graphviz's own package give for this network.
STYLE = "fixedsize=true height=0.8034 shape={} style=filled width=1.3]\n"
SOURCE = (
    "digraph t {\n"
    '\tdata [label=data fillcolor="#8dd3c7" ' + STYLE.format("oval") +
    '\tc [label="Convolution\n3x3/1, 4" fillcolor="#fb8072" ' + STYLE.format("box") +
    '\ta [label="Activation\nrelu" fillcolor="#ffffb3" ' + STYLE.format("box") +
    '\tc -> data [label="3x8x8" arrowtail=open dir=back]\n'
    '\ta -> c [label="4x6x6" arrowtail=open dir=back]\n'
    "}\n"
)  # fmt: skip


def test_drawings_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(visualization, "graphviz", None)
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="c")
    net = mx.sym.Activation(net, act_type="relu", name="a")
    drawn = visualization.plot_network(net, "t", shape={"data": (1, 3, 8, 8)})
    assert drawn.source == SOURCE
    path = drawn.save("net.gv", str(tmp_path / "new"))
    assert (tmp_path / "new" / "net.gv").read_text() == SOURCE
    assert path == str(tmp_path / "new" / "net.gv")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mx.GnomonError, match="dot of graphviz is not installed"):
        drawn.render()
    script = "#!/bin/sh\n/bin/cp $4 $3\n"
    (tmp_path / "dot").write_text(script)
    (tmp_path / "dot").chmod(0o755)
    made = drawn.render("net.gv", str(tmp_path))
    assert made == str(tmp_path / "net.gv.pdf")
    assert (tmp_path / "net.gv.pdf").read_text() == SOURCE
    (tmp_path / "dot").write_text("#!/bin/sh\necho no such format >&2; exit 1\n")
    with pytest.raises(mx.GnomonError, match="render: dot: no such format"):
        drawn.render("net.gv", str(tmp_path))


def test_names_in_drawings_are_quoted_where_needed():
    graph = visualization.Digraph("node")
    graph.edge("a-b", 'say "x"', label="-1.5")
    assert graph.source == 'digraph "node" {\n\t"a-b" -> "say \\"x\\"" [label=-1.5]\n}\n'


def test_a_summary_counts_parameters_by_what_reads_them(capsys):
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(5, in_units=4), mx.gluon.nn.Dense(5, in_units=5, use_bias=False))
    visualization.print_summary(net(mx.sym.var("data")), {"data": (1, 4)})
    assert "Total params: 50\n" in capsys.readouterr().out
    shared, data = mx.sym.var("mine"), mx.sym.var("data")
    for name in ("one", "two"):
        data = mx.sym.FullyConnected(data, shared, no_bias=True, num_hidden=4, name=name)
    visualization.print_summary(data, {"data": (1, 4)})
    assert "Total params: 16\n" in capsys.readouterr().out


def test_gradients_of_one_operator_are_told_in_order():
    watched, monitor = module(), mx.mon.Monitor(1, pattern="fc1_backward.*", sort=False)
    watched.install_monitor(monitor)
    monitor.tic()
    watched.forward_backward(BATCH)
    names = [name for _, name, _ in monitor.toc()]
    assert len(names) > 1
    assert names == sorted(names)
