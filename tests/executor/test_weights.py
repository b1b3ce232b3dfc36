"""Weights that prediction keeps in a library's layout: never older than the parameters."""

import gc
import os
import threading
import warnings

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, config, gluon

SHAPES = ((1, 16, 9, 9), (3, 16, 7, 8))


class Net(gluon.HybridBlock):
    """Convolutions of every kind: folded with a normalization, plain, of groups, turned."""

    def __init__(self, **how):
        super().__init__(**how)
        with self.name_scope():
            self.a = gluon.nn.Conv2D(16, 3, padding=1, use_bias=False, in_channels=16)
            self.bn = gluon.nn.BatchNorm(in_channels=16)
            self.b = gluon.nn.Conv2D(32, 3, in_channels=16, activation="relu")
            self.c = gluon.nn.Conv2D(32, 3, in_channels=32, groups=2, use_bias=False)
            self.d = gluon.nn.Conv2DTranspose(16, 3, in_channels=32)

    def hybrid_forward(self, F, x):
        return self.d(self.c(self.b(self.bn(self.a(x)))))


def made(**how):
    net = Net(**how)
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    return net


def twin(net):
    """The same network on the same parameters, whose operators run one by one."""
    return Net(prefix=net.prefix, params=net.collect_params())


def check(net, plain, rng, shape=None):
    x = mx.nd.array(rng.standard_normal(shape or SHAPES[rng.integers(2)]).astype("float32"))
    wanted = plain(x).asnumpy()  # sums of large terms may be small
    np.testing.assert_allclose(net(x).asnumpy(), wanted, 1e-4, 1e-4 + 1e-6 * abs(wanted).max())


def weight(net, rng):
    return (net.a, net.b, net.c, net.d)[rng.integers(4)].weight


def values(w, rng):
    return mx.nd.array(rng.standard_normal(w.shape).astype("float32") * 0.2)


def write_set_data(net, rng, folder):
    w = weight(net, rng)
    w.set_data(values(w, rng))


def write_elements(net, rng, folder):
    w = weight(net, rng)
    w.data()[:] = values(w, rng)


def write_in_place(net, rng, folder):
    w = weight(net, rng).data()
    w += values(w, rng)


def write_out(net, rng, folder):
    w = weight(net, rng)
    mx.nd.tanh(values(w, rng), out=w.data())


def write_slice(net, rng, folder):
    weight(net, rng).data()[1:3] = float(rng.random())


def write_view(net, rng, folder):
    weight(net, rng).data().reshape((-1,))[5:70] -= 0.5


def write_update(net, rng, folder):
    w = weight(net, rng)
    mx.nd.sgd_update(w.data(), values(w, rng), lr=0.5, out=w.data())


def write_copy(net, rng, folder):
    w = weight(net, rng)
    values(w, rng).copyto(w.data())


def write_added(net, rng, folder):
    """A gradient that is added to what the parameter holds."""
    w = weight(net, rng).data()
    x = mx.sym.Variable("x")
    ones = mx.nd.ones(w.shape)
    executor = (x * 0.25).bind(mx.cpu(), {"x": ones}, {"x": w}, grad_req="add")
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(w.shape))


def write_statistics(net, rng, folder):
    net.bn.running_var.set_data(mx.nd.array(rng.random(16) + 0.5))


def write_step(net, rng, folder):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    with autograd.record():
        loss = net(mx.nd.array(rng.standard_normal(SHAPES[0]))).square().mean()
    loss.backward()
    trainer.step(1)


def write_load(net, rng, folder):
    other = made(prefix=net.prefix)
    name = str(folder / "parameters")
    other.save_parameters(name)
    net.load_parameters(name)


def write_again(net, rng, folder):
    net.initialize(mx.init.Normal(0.2), force_reinit=True)


def write_cast(net, rng, folder):
    net.cast("float64")
    net.cast("float32")


def write_outside(net, rng, folder):
    """Memory that others may write, from now on at any time."""
    w = weight(net, rng).data()
    other = mx.nd.from_dlpack(w.to_dlpack_for_write())
    other[:] = values(w, rng)
    other.wait_to_read()


WRITES = {k: v for k, v in globals().items() if k.startswith("write_")}


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_seen(name, tmp_path):
    rng, net = np.random.default_rng(3), made()
    plain = twin(net)
    for _ in range(2):
        for shape in SHAPES:
            check(net, plain, rng, shape)
        WRITES[name](net, rng, tmp_path)
        for shape in SHAPES:
            check(net, plain, rng, shape)


@pytest.mark.parametrize("seed", range(3))
def test_random_writes_between_predictions(seed, tmp_path):
    rng, net = np.random.default_rng(seed), made()
    plain, other = twin(net), twin(net)
    other.hybridize(static_alloc=True)
    writes = list(WRITES.values())
    for _ in range(20):
        for _ in range(rng.integers(3)):
            writes[rng.integers(len(writes))](net, rng, tmp_path)
        check((net, other)[rng.integers(2)], plain, rng)


def convolution(norm=False):
    x = mx.sym.Variable("x")
    x = mx.sym.Convolution(x, num_filter=64, kernel=(3, 3), no_bias=True, name="conv")
    return mx.sym.BatchNorm(x, fix_gamma=False, name="bn") if norm else x


def filled(executor):
    rng = np.random.default_rng(0)
    for array in (*executor.arg_arrays, *executor.aux_arrays):
        array[:] = rng.random(array.shape, np.float32)
    return executor


def bound(net):
    return filled(net.simple_bind(mx.cpu(), grad_req="null", x=(1, 32, 8, 8)))


def agrees(executor, **fed):
    """Whether a prediction is what the network gives for these arrays, without passes."""
    found = executor.forward(**fed)[0].asnumpy()
    with config.using(passes=False, onednn=False):
        args, aux = executor.arg_dict, executor.aux_dict
        plain = executor._symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
        np.testing.assert_allclose(found, plain.forward()[0].asnumpy(), 1e-4, 1e-3)


def counted(executor):
    """A list that grows with each weight that the prediction of `executor` copies."""
    runs = []
    (run,) = (run for mode, run in executor._runs.items() if not mode.differentiate)
    for part in run._prepared._parts:
        work = part.program.run
        part.program = type("Counted", (), {"run": lambda self, work=work: runs.append(work())})()
    return runs


def test_a_weight_is_copied_only_where_it_has_changed():
    turned = mx.sym.Deconvolution(convolution(), kernel=(3, 3), num_filter=32, name="turned")
    executor = bound(turned)
    agrees(executor)
    runs = counted(executor)
    agrees(executor)
    assert not runs
    for count, name in enumerate(("conv_weight", "turned_weight"), 1):
        executor.arg_dict[name][:] = 0.5
        agrees(executor)
        assert len(runs) == count


def test_training_keeps_no_copies():
    executor = filled(convolution().simple_bind(mx.cpu(), x=(1, 32, 8, 8)))
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones(executor.outputs[0].shape))
        executor.arg_dict["conv_weight"][:] -= 0.1 * executor.grad_dict["conv_weight"]
        agrees(executor)
    kept = {mode.differentiate: run._prepared for mode, run in executor._runs.items()}
    assert kept[True] is None
    assert kept[False] is not None


@pytest.mark.parametrize("programs", [False, True])
def test_a_weight_may_be_fed(programs):
    with config.using(programs=programs):
        executor = bound(convolution())
        for value in (1.0, 2.0):
            agrees(executor, conv_weight=mx.nd.full((64, 32, 3, 3), value))


def test_a_weight_that_the_graph_computes_is_not_kept():
    scale, w = mx.sym.Variable("scale", shape=(1, 1, 1, 1)), mx.sym.Variable("w")
    x = mx.sym.broadcast_mul(w, scale)
    x = mx.sym.Convolution(mx.sym.Variable("x"), x, num_filter=64, kernel=(3, 3), no_bias=True)
    executor = filled(x.simple_bind(mx.cpu(), grad_req="null", x=(1, 32, 8, 8), w=(64, 32, 3, 3)))
    for value in (1.0, 2.0):
        executor.arg_dict["scale"][:] = value
        agrees(executor)


@pytest.mark.parametrize("norm", [False, True])
def test_executors_of_several_shapes_share_copies(norm):
    executor = bound(convolution(norm))
    every = [executor, *(executor.reshape(allow_up_sizing=True, x=(n, 32, 8, 8)) for n in (2, 3))]
    for _ in range(3):
        for each in every:
            agrees(each)
        executor.arg_dict["conv_weight"][:] += 1
    room = executor.arena.room(mx.cpu())
    assert len(room._copies) == 1
    del executor, each, every
    gc.collect()
    assert not room._copies


def test_networks_on_the_same_parameters_each_see_every_write():
    net = made()
    symbol = net(mx.sym.Variable("x"))
    arrays = {k: v.data() for k, v in net.collect_params().items()}
    aux = {k: arrays.pop(k) for k in symbol.list_auxiliary_states()}
    x = mx.nd.random.normal(shape=SHAPES[0])
    executors = [symbol.bind(mx.cpu(), {**arrays, "x": x}, aux_states=aux, grad_req="null")
                 for _ in range(2)]  # fmt: skip
    plain = twin(net)
    for k in range(4):
        net.a.weight.data()[:] += 0.1 * k
        arrays[net.d.weight.name][:] *= -1
        for found in (net(x), *(e.forward()[0] for e in executors)):
            np.testing.assert_allclose(found.asnumpy(), plain(x).asnumpy(), 1e-4, 1e-4)


def test_module_predicts_with_the_parameters_that_were_set():
    module = mx.mod.Module(convolution(norm=True), ["x"], None)
    module.bind([("x", (2, 32, 8, 8))], for_training=False)
    module.init_params(mx.init.Normal(0.3))
    rng = np.random.default_rng(0)
    data = mx.io.NDArrayIter({"x": rng.random((4, 32, 8, 8), np.float32)}, batch_size=2)
    for _ in range(3):
        args, aux = module.get_params()
        args = {k: mx.nd.array(rng.random(v.shape, np.float32)) for k, v in args.items()}
        module.set_params(args, aux)
        found = module.predict(data, reset=True).asnumpy()
        with config.using(passes=False, onednn=False):
            inputs = {**args, "x": mx.nd.array(data.data[0][1])}
            plain = module.symbol.bind(mx.cpu(), inputs, aux_states=aux, grad_req="null")
            np.testing.assert_allclose(found, plain.forward()[0].asnumpy(), 1e-4, 1e-3)


def test_threads_predict_while_a_weight_is_written():
    """Each prediction is that of one of the weights that were set, and the last of the last."""
    net = made()
    x = mx.nd.ones(SHAPES[0])
    kinds, failures = [], []
    for value in (0.25, -0.5):
        net.b.weight.data()[:] = value
        kinds.append(net(x).asnumpy())

    def predict():
        for _ in range(15):
            found = net(x).asnumpy()
            if not any(np.allclose(found, kind, 1e-3, 1e-4) for kind in kinds):
                failures.append(found)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for k in range(30):
        net.b.weight.data()[:] = (0.25, -0.5)[k % 2]
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_allclose(net(x).asnumpy(), kinds[1], 1e-3, 1e-4)


def test_a_forked_child_has_copies_of_its_own():
    rng, net = np.random.default_rng(0), made()
    plain = twin(net)
    check(net, plain, rng, SHAPES[0])
    with warnings.catch_warnings():  # Python 3.12 warns of forks beside threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            write_elements(net, rng, None)
            check(net, plain, rng, SHAPES[0])
            os._exit(0)
        except BaseException:
            os._exit(1)
    check(net, plain, rng, SHAPES[0])
    assert os.waitpid(child, 0)[1] == 0
    check(net, plain, rng, SHAPES[0])
