"""The page of `Executor.report`: valid, whole, of its own, and drawn by a browser where one is.

A machine without a browser checks the page by the standard library's parser alone.
"""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.executor.report.drawing import ACROSS, DOWN, WIDTH, Column, layers, ordered, places
from tests.simulated import gpus

EMPTY = {"meta", "path", "rect", "line", "i"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Page(HTMLParser):
    """Reads a page: every tag is closed in its order; what is linked, loaded and named."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.words = [], set(), set(), [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        assert not {"src", "srcset"} & given.keys()
        assert tag not in ("script", "link", "img", "iframe")
        if "id" in given:
            assert given["id"] not in self.ids
            self.ids.add(given["id"])
        if "href" in given:
            self.links.add(given["href"])
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def network():
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="bn"), act_type="relu", name="<act>")
    x = mx.sym.FullyConnected(mx.sym.Dropout(x, name="drop"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def bound(net=None, ctx=None):
    executor = (net or network()).simple_bind(ctx or mx.cpu(), data=(2, 3, 8, 8), grad_req="add")
    rng = np.random.default_rng(0)
    for array in (*executor.arg_arrays, *executor.aux_arrays, *executor.grad_arrays):
        array[:] = rng.random(array.shape) + 0.1
    return executor


def drawn(path):
    """The page as a browser has it after drawing; None where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return None
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        f"--user-data-dir={path.parent}/u",
    ]
    done = subprocess.run(
        [browser, *flags, path.as_uri()], capture_output=True, timeout=120, check=True
    )
    return done.stdout.decode()


@pytest.mark.parametrize("train", [None, False])
def test_a_page_is_whole(tmp_path, train):
    executor, path = bound(), tmp_path / "report.html"
    executor.report(path, train)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", text)
    assert {link.removeprefix("#") for link in page.links} <= page.ids
    plan = executor.memory_plan(train)
    assert page.tags.count("g") == len(plan.tasks) == page.tags.count("details")
    assert page.tags.count("title") > len(plan.tasks) + 1  # and one for each life
    words = "".join(page.words)
    for expected in ("conv", "<act>", "GB/s", "GFLOP/s", "for ", "library: "):
        assert expected in words
    shown = drawn(path)
    if shown is not None:
        assert shown.count('class="node"') == len(plan.tasks)
        assert "&lt;act&gt;" in shown


def test_a_report_leaves_everything_as_it_was(tmp_path):
    executor = bound()
    executor.forward(is_train=True)
    everything = [*executor.arg_arrays, *executor.aux_arrays, *executor.grad_arrays]
    before = [a.asnumpy() for a in (*everything, *executor.outputs)]
    executor.report(tmp_path / "report.html")
    executor.report(str(tmp_path / "predict.html"), is_train=False)
    for array, values in zip((*everything, *executor.outputs), before, strict=True):
        np.testing.assert_array_equal(array.asnumpy(), values)


def test_a_page_of_a_gpu_has_no_times(tmp_path):
    path = tmp_path / "report.html"
    with gpus() as driver:
        executor = bound(ctx=mx.gpu(0))
        before = [a.asnumpy() for a in executor.grad_arrays]
        launch = driver.launch
        driver.launch = None  # nothing runs
        executor.report(path)
        driver.launch = launch
        for array, values in zip(executor.grad_arrays, before, strict=True):
            np.testing.assert_array_equal(array.asnumpy(), values)
        plan = executor.memory_plan()
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert {link.removeprefix("#") for link in page.links} <= page.ids
    assert page.tags.count("details") == len(plan.tasks)
    words = "".join(page.words)
    for expected in ("conv", "By bytes.", "convolution: ", "for ", "library: <Convolution"):
        assert expected in words
    for unknown in ("GB/s", "GFLOP/s", " us", "time of a run"):
        assert unknown not in words


def test_a_page_of_a_gpu_tells_what_the_processor_does(tmp_path):
    net = mx.sym.RNN(mx.sym.Variable("data"), state_size=2, num_layers=1, mode="gru", name="rnn")
    with gpus() as driver:
        driver.blas = lambda: None
        executor = net.simple_bind(mx.gpu(0), data=(4, 3, 2), grad_req="null")
        executor.report(tmp_path / "report.html")
    assert "done by the processor, on copies" in (tmp_path / "report.html").read_text("utf-8")


def test_operators_on_data_are_reported(tmp_path):
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    mx.operator.register("report_twice")(TwiceProp)
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="report_twice", name="twice")
    net.simple_bind(mx.cpu(), data=(2, 3)).report(tmp_path / "r.html")
    assert "runs on data, in Python" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written():
    with pytest.raises(GnomonError, match=r"Executor\.report: cannot write '/nowhere/r.html'"):
        bound().report("/nowhere/r.html")


def test_layers_are_ordered_without_crossings():
    edges = [("a", "d"), ("b", "c")]
    rows = ordered(layers("abcd", edges), edges)
    assert [rows[0].index(s) - rows[1].index(r) for s, r in edges] == [0, 0]


def test_columns_stand_apart_and_the_second_goes_up():
    points, width, height = places([Column("abc"), Column("de", up=True)], ["ab", "bc", "de"])
    assert points["e"][1] < points["d"][1] == points["c"][1]
    assert points["d"][0] >= points["a"][0] + ACROSS
    assert width >= points["d"][0] + WIDTH
    assert height >= points["c"][1] + DOWN - 12
    assert len(set(points.values())) == 5
    assert places([], [])[0] == {}
