"""Modules: states, shapes, parameters, checkpoints, several devices, refusals."""

import logging
from typing import NamedTuple

import numpy as np
import pytest
from golden.training import perceptron

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.io import DataBatch, NDArrayIter
from gnomon.module import Module
from gnomon.module.executor_group import split_batch

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(20, 4)).astype(np.float32)
LABELS = POINTS[:, :3].argmax(axis=1).astype(np.float32)


def data(size=5):
    return NDArrayIter(POINTS, LABELS, size)


def batch(rows):
    return DataBatch([mx.nd.array(POINTS[:rows])], [mx.nd.array(LABELS[:rows])])


def bound(**kwargs):
    contexts = kwargs.pop("context", mx.cpu())
    fixed = kwargs.pop("fixed_param_names", None)
    module = Module(perceptron(mx.sym), context=contexts, fixed_param_names=fixed)
    module.bind(data().provide_data, data().provide_label, **kwargs)
    mx.random.seed(7)
    module.init_params(mx.init.Uniform(0.5))
    return module


def trained():
    module = bound()
    module.fit(data(), num_epoch=2, optimizer_params={"learning_rate": 0.3, "momentum": 0.9})
    return module


def numbers(module):
    args, aux = module.get_params()
    return {name: array.asnumpy() for name, array in {**args, **aux}.items()}


def same(first, second):
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


def test_names_and_shapes():
    module = bound()
    assert module.data_names == ["data"]
    assert module.label_names == ["softmax_label"]
    assert module.output_names == ["softmax_output"]
    assert module.data_shapes == [("data", (5, 4))]
    assert module.label_shapes == [("softmax_label", (5,))]
    assert module.output_shapes == [("softmax_output", (5, 3))]


def test_training_learns():
    module = bound()
    before = dict(module.score(data(), ["acc", "ce"]))
    module.fit(
        data(),
        num_epoch=30,
        initializer=None,
        optimizer_params={"learning_rate": 0.5, "momentum": 0.9},
    )
    after = dict(module.score(data(), ["acc", "ce"]))
    assert after["cross-entropy"] < 0.5 * before["cross-entropy"]
    assert after["accuracy"] > 0.9


def test_fit_tells_its_callbacks(caplog):
    caplog.set_level(logging.INFO)
    seen = []
    Module(perceptron(mx.sym)).fit(
        data(),
        eval_data=data(),
        num_epoch=2,
        begin_epoch=1,
        batch_end_callback=[lambda p: seen.append((p.epoch, p.nbatch)), lambda p: None],
        epoch_end_callback=lambda epoch, net, args, aux: seen.append((epoch, sorted(args)[0])),
        eval_batch_end_callback=lambda p: seen.append(("eval", p.nbatch)),
        eval_end_callback=lambda p: seen.append(("scored", p.nbatch, p.eval_metric.name)),
    )
    assert seen == [
        *((1, n) for n in range(4)),
        (1, "fc1_bias"),
        *(("eval", n) for n in range(4)),
        ("scored", 4, "accuracy"),
    ]
    for words in ("Epoch[1] Train-accuracy=", "Epoch[1] Time cost=", "Epoch[1] Validation-acc"):
        assert words in caplog.text


def test_callbacks_get_the_variables_that_mxnet_has():
    seen = []
    module = bound()
    module.fit(data(), num_epoch=1, batch_end_callback=lambda p: seen.append(p.locals))
    module.score(data(), "acc", score_end_callback=lambda p: seen.append(p.locals))
    names = "self train_data optimizer epoch nbatch data_batch next_data_batch end_of_batch tic"
    assert set(names.split()) <= seen[0].keys()
    assert [(s["nbatch"], s["end_of_batch"]) for s in seen[:4:3]] == [(0, False), (3, True)]
    names = "self eval_data eval_batch eval_metric nbatch actual_num_batch reset"
    assert set(names.split()) <= seen[-1].keys()
    assert seen[-1]["actual_num_batch"] == 4


def test_predictions():
    module = trained()
    whole = module.predict(data()).asnumpy()
    assert whole.shape == (20, 3)
    np.testing.assert_allclose(whole.sum(axis=1), 1, 1e-5)
    assert module.predict(data(), num_batch=2).shape == (10, 3)
    (listed,) = module.predict(data(), always_output_list=True)
    assert np.array_equal(listed.asnumpy(), whole)
    parts = module.predict(data(), merge_batches=False)
    assert [[out.shape for out in part] for part in parts] == [[(5, 3)]] * 4
    np.testing.assert_allclose(module.predict(POINTS[:7]).asnumpy(), whole[:7], 1e-5)
    padded = module.predict(NDArrayIter(POINTS, batch_size=8))
    np.testing.assert_allclose(padded.asnumpy(), whole, 1e-5)
    assert [n for _, n, _ in module.iter_predict(data())] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="'eval_data'"):
        module.predict([1])


def test_batches_of_other_sizes_rebind_and_share_parameters():
    module = trained()
    module.init_optimizer(force_init=True)
    before = numbers(module)
    for rows in (3, 5, 3, 7):
        module.forward_backward(batch(rows))
        module.update()
        assert module.output_shapes == [("softmax_output", (rows, 3))]
        assert [out.shape for out in module.get_outputs()] == [(rows, 3)]
    assert not same(numbers(module), before)
    fresh = bound()
    fresh.set_params(*module.get_params())
    module.forward(batch(5), is_train=False)
    fresh.forward(batch(5), is_train=False)
    assert np.array_equal(module.get_outputs()[0].asnumpy(), fresh.get_outputs()[0].asnumpy())


def test_a_batch_that_does_not_fit_changes_nothing():
    module = bound()
    with pytest.raises(mx.GnomonError):
        module.forward(DataBatch([mx.nd.zeros((5, 9))], [mx.nd.zeros((5,))]))
    with pytest.raises(mx.GnomonError, match="0 arrays"):
        module.forward(DataBatch([]))
    assert module.data_shapes == [("data", (5, 4))]
    module.forward(batch(5))
    assert module.get_outputs()[0].shape == (5, 3)


def test_prediction_needs_no_labels():
    module = Module(perceptron(mx.sym))
    module.bind([("data", (5, 4))], for_training=False)
    module.set_params(*trained().get_params())
    assert module.label_shapes is None
    assert module.predict(NDArrayIter(POINTS, batch_size=5)).shape == (20, 3)
    assert module.predict(POINTS[:2]).shape == (2, 3)


def test_checkpoints(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    module, prefix = trained(), str(tmp_path / "net")
    module.save_checkpoint(prefix, 2, save_optimizer_states=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "net-0002.params",
        "net-0002.states",
        "net-symbol.json",
    ]
    assert f'Saved checkpoint to "{prefix}-0002.params"' in caplog.text
    again = Module.load(prefix, 2, load_optimizer_states=True)
    again.bind(data().provide_data, data().provide_label)
    assert same(numbers(again), numbers(module))
    assert again.symbol.tojson() == module.symbol.tojson()
    settings = {"optimizer_params": {"learning_rate": 0.3, "momentum": 0.9}}
    again.init_optimizer(**settings)
    for each in (again, module):
        each.forward_backward(batch(5))
        each.update()
    assert same(numbers(again), numbers(module))


def test_parameter_files(tmp_path):
    module, file = trained(), str(tmp_path / "x.params")
    module.save_params(file)
    other = bound()
    other.load_params(file)
    assert same(numbers(other), numbers(module))
    mx.nd.save(file, {"fc1_weight": mx.nd.zeros((1,))})
    with pytest.raises(ValueError, match="arg: or aux:"):
        other.load_params(file)
    mx.nd.save(file, [mx.nd.zeros((1,))])
    with pytest.raises(ValueError, match="names"):
        other.load_params(file)
    assert same(numbers(other), numbers(module))


def test_given_parameters_are_checked_before_any_is_taken():
    module = bound()
    before = numbers(module)
    given = {"fc1_bias": mx.nd.ones((6,))}
    for wrong, kind, words in (
        ({**given, "fc1_weight": mx.nd.ones((2, 2))}, ValueError, r"\(6, 4\)"),
        ({**given, "fc3_weight": mx.nd.ones((2, 2))}, ValueError, "did you mean"),
    ):
        with pytest.raises(kind, match=words):
            module.set_params(wrong, {}, allow_missing=True)
    with pytest.raises(ValueError, match="fc2_weight"):
        module.set_params(given, {})
    assert same(numbers(module), before)
    module.set_params({**given, "more": mx.nd.ones((1,))}, {}, True, allow_extra=True)
    with pytest.raises(ValueError, match=r"aux_params.*'more'"):
        module.set_params(given, {"more": mx.nd.ones((1,))}, allow_missing=True)
    after = numbers(module)
    assert (after.pop("fc1_bias") == 1).all()
    assert same(after, {name: before[name] for name in after})


def test_names_that_the_symbol_lacks_are_passed_over():
    """A part of a network takes the parameters of the whole, as in MXNet 1.9.1."""
    whole = bound()
    given, more = whole.get_params()[0], {"head_weight": mx.nd.ones((1,))}
    whole.set_params({**given, **more}, more)
    part = bound()
    part.init_params(arg_params={**given, **more}, aux_params=more, force_init=True)
    assert same(numbers(part), numbers(whole))
    some = {name: array for name, array in given.items() if name != "fc1_weight"}
    part.init_params(mx.init.One(), {**some, **more}, more, allow_missing=True, force_init=True)
    after, before = numbers(part), numbers(whole)
    assert (after.pop("fc1_weight") == 1).all()
    assert same(after, {name: before[name] for name in after})
    with pytest.raises(ValueError, match="fc1_weight"):
        part.init_params(arg_params={**some, **more}, force_init=True)


def test_what_is_no_iterator_is_refused():
    with pytest.raises(ValueError, match=r"Module\.fit.*train_data.*a DataIter, got"):
        bound().fit(POINTS, num_epoch=1)


def test_fixed_parameters_stay():
    module = bound(fixed_param_names=["fc1_weight"])
    before = numbers(module)
    module.init_optimizer()
    module.forward_backward(batch(5))
    module.update()
    changed = {name for name, value in numbers(module).items() if (value != before[name]).any()}
    assert changed == {"fc1_bias", "fc2_weight", "fc2_bias"}


def test_gradients_of_inputs_and_of_outputs():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    module = Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 3))], inputs_need_grad=True)
    module.init_params(mx.init.One())
    module.forward(DataBatch([mx.nd.ones((4, 3))]), is_train=True)
    heads = np.arange(8, dtype=np.float32).reshape(4, 2)
    module.backward([mx.nd.array(heads)])
    (gradient,) = module.get_input_grads()
    np.testing.assert_allclose(gradient.asnumpy(), np.repeat(heads.sum(1)[:, None], 3, 1))
    parts = module.get_input_grads(merge_multi_context=False)
    assert [[part.shape for part in each] for each in parts] == [[(2, 3), (2, 3)]]
    outputs = module.get_outputs(merge_multi_context=False)
    assert [[part.shape for part in each] for each in outputs] == [[(2, 2), (2, 2)]]


def test_devices_together_do_what_one_does():
    one, two = bound(), bound(context=[mx.cpu(0), mx.cpu(1)])
    two.set_params(*one.get_params())
    for module in (one, two):
        module.init_optimizer(optimizer_params={"learning_rate": 0.5})
        for _ in range(3):
            module.forward_backward(batch(5))
            module.update()
    for name, value in numbers(one).items():
        np.testing.assert_allclose(numbers(two)[name], value, 1e-4, 1e-6)
    assert two.score(data(), "acc") == one.score(data(), "acc")


def test_modules_share_parameters():
    first = bound()
    first.init_optimizer()
    second = Module(perceptron(mx.sym))
    second.bind([("data", (2, 4))], [("softmax_label", (2,))], shared_module=first)
    assert second.optimizer_initialized
    second.forward_backward(batch(2))
    second.update()
    first.forward(batch(5), is_train=False)
    second.forward(batch(5), is_train=False)
    assert np.array_equal(first.get_outputs()[0].asnumpy(), second.get_outputs()[0].asnumpy())


def test_auxiliary_states_are_trained_and_saved(tmp_path):
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", fix_gamma=False)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc"), name="softmax")
    module = Module(net)
    module.fit(data(), num_epoch=2)
    _, aux = module.get_params()
    assert sorted(aux) == ["bn_moving_mean", "bn_moving_var"]
    assert (aux["bn_moving_mean"].asnumpy() != 0).all()
    prefix = str(tmp_path / "net")
    module.save_checkpoint(prefix, 2)
    again = Module.load(prefix, 2)
    again.bind(data().provide_data, data().provide_label)
    assert again.score(data(), "ce") == module.score(data(), "ce")


def test_an_optimizer_of_the_users(caplog):
    module = bound()
    mine = mx.optimizer.SGD(learning_rate=0.1)
    with pytest.warns(UserWarning, match="rescale_grad=1, not 1/batch size=0.2"):
        module.init_optimizer(optimizer=mine, optimizer_params=None)
    assert mine.idx2name == dict(enumerate(["fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]))
    module.init_optimizer()
    assert "ignoring" in caplog.text


def test_binding_twice(caplog):
    module = bound()
    before = numbers(module)
    module.bind([("data", (9, 4))])
    assert "Already bound" in caplog.text
    assert module.data_shapes == [("data", (5, 4))]
    module.bind([("data", (9, 4))], force_rebind=True)
    assert module.data_shapes == [("data", (9, 4))]
    assert same(numbers(module), before)


def test_splitting_a_batch():
    assert split_batch(11, [3, 1, 2]) == [slice(0, 6), slice(6, 8), slice(8, 11)]
    assert split_batch(5, [1, 1, 1, 1])[-1] == slice(3, 5)
    with pytest.raises(ValueError, match="3 devices"):
        split_batch(2, [1, 1, 1])


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: Module(perceptron(mx.sym), data_names=["dta"]), "did you mean 'data'"),
        (lambda: Module(perceptron(mx.sym), fixed_param_names=["fc1_weigth"]), "fc1_weight"),
        (lambda: Module(perceptron(mx.sym), context=[]), "at least one device"),
        (lambda: Module(perceptron(mx.sym), work_load_list=[1, 2]), "work_load_list"),
        (lambda: Module(perceptron(mx.sym)).forward(batch(5)), "call bind first"),
        (lambda: Module(perceptron(mx.sym)).init_params(), "call bind first"),
        (lambda: Module(perceptron(mx.sym)).bind([("dat", (4, 5))]), "data_shapes"),
        (
            lambda: Module(perceptron(mx.sym)).bind([("data", (4, 5))], [("softmax_label", (3,))]),
            "batch size 4",
        ),
        (lambda: Module(perceptron(mx.sym)).bind("a"), "data_shapes.*pairs.*'a'"),
        (lambda: Module(perceptron(mx.sym)).bind([3]), "data_shapes.*pairs"),
        (lambda: Module(perceptron(mx.sym)).bind([("data", (0, 5))]), "a row for each"),
        (lambda: bound().forward(None), "'data_batch': expected a DataBatch.*NoneType"),
        (lambda: bound().forward_backward(mx.nd.ones((5, 4))), "'data_batch'.*NDArray"),
        (lambda: bound().update(), "call init_optimizer first"),
        (lambda: bound(for_training=False).backward(), "for_training"),
        (lambda: bound().get_input_grads(), "inputs_need_grad"),
        (lambda: bound(for_training=False, inputs_need_grad=True), "inputs_need_grad"),
        (lambda: bound().predict(3), "DataIter"),
        (lambda: bound().score(data(), "acuracy"), "acuracy"),
        (
            lambda: bound().score(mx.nd.ones((5, 4)), "acc"),
            r"Module.score: argument 'eval_data': expected a DataIter, got an NDArray of shape",
        ),
        (lambda: list(bound().iter_predict(3, reset=False)), "a DataIter, got 3"),
        (lambda: bound().fit(data()), "num_epoch"),
        (lambda: bound().init_optimizer(kvstore=3), "kvstore"),
        (lambda: bound().init_optimizer(optimizer=3), "optimizer"),
        (lambda: bound().set_states(value=1.0, states=[]), "states"),
    ],
)
def test_refused(act, words):
    with pytest.raises(mx.GnomonError, match=words):
        act()


def test_what_a_callback_is_told_is_shown_as_the_real_library_shows_it():
    shown = "BatchEndParams(epoch=1, nbatch=2, eval_metric=None, locals=None)"
    assert repr(mx.model.BatchEndParam(1, 2, None, None)) == shown


def test_an_iterator_at_its_end_is_told():
    at_end = data()
    assert [*at_end]
    with pytest.raises(StopIteration, match=r"argument 'train_data': .* one at its end"):
        bound().fit(at_end, num_epoch=1)


def test_a_misspelt_parameter_of_an_optimizer_is_a_type_error():
    with pytest.raises(TypeError, match=r"momentun.*did you mean 'momentum'"):
        bound().init_optimizer(optimizer_params={"momentun": 1})


def test_a_label_that_the_symbol_lacks_is_told():
    words = "'label_names'.*'softmax_label'.*'softmax_labl'.*mean"
    with pytest.warns(UserWarning, match=words) as told:
        module = Module(perceptron(mx.sym), label_names=["softmax_labl"])
    assert module.label_names == []
    assert told[0].filename == __file__


class Named(NamedTuple):
    data: list


def small():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))


def test_a_batch_is_anything_with_data():
    module = small()
    module.bind([("data", (3, 10))], for_training=False)
    module.init_params()
    for size in (3, 5):
        module.forward(Named([mx.nd.ones((size, 10))]))
        assert module.get_outputs()[0].shape == (size, 3)


def test_inputs_that_do_not_fit_the_parameters_are_refused():
    module = small()
    module.bind([("data", (3, 10))], [("softmax_label", (3,))], for_training=False)
    module.init_params()
    before = module.predict(mx.nd.ones((3, 10))).asnumpy()
    with pytest.raises(GnomonError, match="fc_weight"):
        module.forward(Named([mx.nd.ones((3, 7))]))
    with pytest.raises(GnomonError, match="fc_weight"):
        module.reshape([("data", (3, 7))])
    with pytest.raises(GnomonError, match="fc_weight"):
        module.predict(mx.nd.ones((4, 20)))
    np.testing.assert_array_equal(module.predict(mx.nd.ones((3, 10))).asnumpy(), before)


def test_shapes_given_as_lists_do_not_rebind():
    one = Module(perceptron(mx.sym))
    one.bind([("data", [6, 4])], [("softmax_label", [6])])
    one.init_params()
    bound = one._exec_group.execs[0]
    one.forward(DataBatch([mx.nd.ones((6, 4))], [mx.nd.zeros((6,))]))
    assert one._exec_group.execs[0] is bound
    assert one.data_shapes == [("data", (6, 4))]


def test_a_prediction_leaves_what_was_read_of_the_one_before():
    one = Module(perceptron(mx.sym))
    one.bind([("data", (6, 4))], [("softmax_label", (6,))], for_training=False)
    one.init_params()
    kept = []
    for scale in (1.0, -1.0):
        one.forward(DataBatch([mx.nd.ones((6, 4)) * scale], [mx.nd.zeros((6,))]))
        kept.append(one.get_outputs()[0] + 1)  # still pending when the next one is computed
    assert not np.array_equal(kept[0].asnumpy(), kept[1].asnumpy())


def test_sparse_batches_go_into_dense_inputs():
    whole = np.eye(4, 6, dtype="float32")
    sparse = mx.nd.sparse.csr_matrix(whole)
    labels = np.arange(4.0) % 3
    found = []
    for data in (whole, sparse):
        one = Module(perceptron(mx.sym))
        batches = mx.io.NDArrayIter(data, labels, 2, last_batch_handle="discard")
        one.fit(batches, num_epoch=1, initializer=mx.init.One())
        one.forward(DataBatch([mx.nd.array(whole)[:2]], [mx.nd.zeros((2,))]), is_train=False)
        dense = one.get_outputs()[0].asnumpy()
        one.forward(DataBatch([sparse[0:2]], [mx.nd.zeros((2,))]), is_train=False)
        np.testing.assert_array_equal(one.get_outputs()[0].asnumpy(), dense)
        found.append(one.get_params()[0])
    for name, value in found[0].items():
        np.testing.assert_array_equal(found[1][name].asnumpy(), value.asnumpy())


def test_fit_needs_labels_where_the_network_takes_them():
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("data"), name="softmax")
    data = mx.io.NDArrayIter(np.ones((4, 2)), batch_size=2)
    words = "Module.fit: argument 'train_data': expected labels for softmax_label, got data without"
    with pytest.raises(ValueError, match=words):
        mx.mod.Module(net).fit(data, num_epoch=1)
    plain = mx.mod.Module(mx.sym.MakeLoss(mx.sym.exp(mx.sym.Variable("data"))), label_names=())
    with pytest.raises(ValueError, match=r"Accuracy: argument 'labels': .*the data has no labels"):
        plain.fit(data, num_epoch=1)


def test_values_that_are_passed_over_are_told():
    module = bound()
    module.init_params(mx.init.One())
    module.init_params()
    with pytest.warns(UserWarning, match="force_init=True takes those given") as told:
        module.init_params(arg_params=module.get_params()[0])
    assert [warning.filename for warning in told] == [__file__]
