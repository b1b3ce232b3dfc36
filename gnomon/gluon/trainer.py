"""`Trainer`: applies an optimizer to parameters, over all contexts that they are on.

States. Until the first step (or `allreduce_grads`, `update`, `save_states`...) nothing but the
settings is known, since parameters may still be deferred. Then a store is chosen: none for a single
context, where weights are updated by one operation; else gradients are summed over the contexts by
a store, which updates the weights itself or leaves that to an updater for each context.
`_layout` remembers what is updated until parameters get other arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

from gnomon import kvstore as kv
from gnomon import ndarray as nd
from gnomon import optimizer as opt
from gnomon.base import DTypeError, GnomonError, ParamError, complaint, shown
from gnomon.context import cpu
from gnomon.executor.later import Updates
from gnomon.gluon.parameter import Parameter, ParameterDict  # noqa: F401
from gnomon.ground.arguments import CheckedArguments
from gnomon.ground.files import naming, read_bytes, replacing
from gnomon.kvstore import KVStore, KVStoreBase  # noqa: F401
from gnomon.ndarray.core.tape import Leaf, changes, passes


class StaleGradient(UserWarning):
    """A gradient that no backward pass has stored since the last step."""


_is_fresh = attrgetter("is_fresh")


class Replica(NamedTuple):
    """What is updated on one context: indices, gradients, weights, and their places on the tape."""

    indices: tuple[int, ...]
    grads: tuple[Any, ...]
    weights: tuple[Any, ...]
    leaves: tuple[Leaf, ...]


class Trainer(CheckedArguments):
    """Applies an optimizer to parameters.

    >>> import gnomon as mx
    >>> net = mx.gluon.nn.Dense(1, use_bias=False, weight_initializer="ones")
    >>> net.initialize()
    >>> trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    >>> with mx.autograd.record():
    ...     loss = net(mx.nd.array([[1, 2]]))
    >>> loss.backward()
    >>> trainer.step(batch_size=1)
    >>> net.weight.data().asnumpy()
    array([[0.5, 0. ]], dtype=float32)

    Args:
        params: a dictionary of parameters (`collect_params()`), or a list.
        optimizer: an optimizer, or the name of one.
        optimizer_params: its arguments, where it is a name.
        kvstore: a store, its kind, or None; it sums gradients over contexts.
        compression_params: how a store between processes compresses gradients.
        update_on_kvstore: whether the store updates weights; None leaves that to it.

    Raises:
        ParamError: something else among the parameters; arguments beside a finished optimizer.
        TypeError: there are no parameters.
    """

    def __init__(
        self,
        params: Any,
        optimizer: Any,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        self._params = _listed(params)
        order = list(params.values()) if hasattr(params, "values") else self._params
        places = {id(p): k for k, p in enumerate(order)}
        #: the places of parameters in the order in which they were made: gradients of the last
        #: layers are there first, and leave first
        self._ages = [places[id(p)] for p in self._params]
        sparse = [p for p in self._params if p.stype != "default"]
        for param in sparse:
            if param._trainer is not None:
                raise GnomonError(
                    f"Trainer: Parameter {param.name!r}, in {param.stype} storage, has a Trainer "
                    "already, which keeps its rows"
                )
        for param in self._params:
            param._trainer = self
        given = dict(optimizer_params or {})
        self._scale = float(given.get("rescale_grad", 1.0))
        if isinstance(optimizer, opt.Optimizer):
            if given:
                expected = "none beside a finished optimizer"
                raise ParamError(complaint("Trainer", "optimizer_params", expected, given))
            self._scale = float(optimizer.rescale_grad)
        self._optimizer = opt.create(optimizer, **given)
        self._updaters: list[Any] = []
        self._begin(bool(sparse), kvstore, compression_params, update_on_kvstore)

    def _begin(self, sparse: bool, kvstore: Any, compression: Any, update: bool | None) -> None:
        """Be as before the first step; parameters of a pickle may not have their own state yet."""
        self._name_params()
        self._push_order: list[int] = []
        self._numbers = {id(p): k for k, p in enumerate(self._params)}
        self._sparse = sparse
        self._amp_loss_scaler: Any = None  # of mixed precision, and the scale without it
        self._amp_original_scale = self._scale
        self._kvstore_params = {"kvstore": kvstore, "update_on_kvstore": update}
        self._compression = compression
        self._kvstore: Any = None
        self._update_on_kvstore = False
        self._kv_initialized = False
        self._layout: tuple[Replica, ...] = ()
        self._pushes: list[Updates] = []
        self._seen = -1

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_contains_sparse_weight" not in state:
            self.__dict__.update(state)
            self._name_params()  # which optimizers leave out of their state
            return
        self._params, self._optimizer = state["_params"], state["_optimizer"]  # MXNet wrote it
        self._scale, self._updaters = state["_scale"], state["_updaters"]
        self._ages = list(range(len(self._params)))
        wanted, compression = state["_kvstore_params"], state["_compression_params"]
        how = wanted["kvstore"], compression, wanted["update_on_kvstore"]
        self._begin(state["_contains_sparse_weight"], *how)

    def _name_params(self) -> None:
        """Have the optimizer know factors on rates and decays of parameters."""
        self._optimizer.param_dict = dict(enumerate(self._params))

    # --- settings -------------------------------------------------------------------------------

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The learning rate now."""
        return float(self._optimizer.learning_rate)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; ParamError where a schedule decides it."""
        self._optimizer.set_learning_rate(lr)

    # --- steps ----------------------------------------------------------------------------------

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Sum gradients over contexts, divide by `batch_size`, and update the parameters.

        With `ignore_stale_grad`, parameters without a new gradient stay as they are.

        Raises:
            StaleGradient: a gradient that no backward pass has stored since the last step, of this
                trainer or of another one.
        """
        self._divide("step", batch_size)
        self._prepare()
        self._check_fresh(ignore_stale_grad)
        if self._update_on_kvstore and self._overflows():
            return
        self._allreduce_grads()
        self._update(ignore_stale_grad)

    def _divide(self, method: str, batch_size: float) -> None:
        """Have gradients divided by `batch_size`.

        Raises:
            ParamError: it is no number, or 0.
        """
        try:
            self._check_and_rescale_grad(self._scale / batch_size)
        except (TypeError, ZeroDivisionError):
            got = shown(batch_size)
            expected = "a number other than 0"
            where = f"Trainer.{method}"
            raise ParamError(complaint(where, "batch_size", expected, got)) from None

    def _check_and_rescale_grad(self, scale: float) -> None:
        """Have gradients multiplied by `scale`; classes with their own `step` call it."""
        self._optimizer.rescale_grad = scale

    def _overflows(self) -> bool:
        """Whether gradients of a scaled loss are not finite: then they count as used.

        Raises:
            GnomonError: processes decide that apart, where a store updates weights.
        """
        if self._amp_loss_scaler is None:
            return False
        if self._update_on_kvstore and self._kvstore.num_workers > 1:
            raise GnomonError(
                "Trainer.step: a loss scaled by amp needs update_on_kvstore=False where processes "
                "share a store: each of them has to see the summed gradients"
            )
        found = bool(self._amp_loss_scaler.has_overflow(self._params))
        if found:
            self._use_up()
        return found

    def _use_up(self) -> None:
        """All gradients are old from now on, for every trainer."""
        now = passes.count
        for replica in self._layout:
            for leaf in replica.leaves:
                leaf.used = now

    def allreduce_grads(self) -> None:
        """Sum gradients over contexts alone; `update` does the rest.

        Raises:
            GnomonError: the store updates the weights itself.
        """
        self._prepare()
        self._check_apart("allreduce_grads")
        self._allreduce_grads()

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Update the parameters alone; gradients are the same on all contexts already.

        Raises:
            StaleGradient: as `step`.
            GnomonError: the store updates the weights itself.
        """
        self._prepare()
        self._check_apart("update")
        self._divide("update", batch_size)
        self._check_fresh(ignore_stale_grad)
        self._update(ignore_stale_grad)

    def _check_apart(self, method: str) -> None:
        if self._update_on_kvstore:
            raise GnomonError(
                f"Trainer.{method}: the store sums gradients and updates weights at once: make the "
                "Trainer with update_on_kvstore=False"
            )

    def _check_fresh(self, ignore: bool) -> None:
        """Raises StaleGradient where a gradient is an old one."""
        if ignore:
            return
        for replica in self._layout:
            if all(map(_is_fresh, replica.leaves)):
                continue
            for k, leaf in enumerate(replica.leaves):
                if not leaf.is_fresh:
                    param, where = self._params[replica.indices[k]], replica.weights[k].context
                    raise StaleGradient(
                        f"Trainer: Parameter {param.name!r} on {where} has no new gradient since "
                        "the last step: was it used in what backward was called for? With "
                        "ignore_stale_grad=True it stays as it is"
                    )

    def _allreduce_grads(self) -> None:
        """Sum gradients over contexts; a store that updates does that too."""
        if self._kvstore is None or not self._layout:
            return
        keys = list(self._layout[0].indices)
        grads = [list(each) for each in zip(*(r.grads for r in self._layout), strict=True)]
        weights = None
        if self._update_on_kvstore:
            weights = [list(each) for each in zip(*(r.weights for r in self._layout), strict=True)]
        if not hasattr(self._kvstore, "push"):
            kv.pushpull_each(self._kvstore, keys, keys, grads, weights)
            return
        # a store of this process alone updates in the order of the parameters
        order = self._push_order if self._kvstore.num_workers > 1 else range(len(keys))
        self._kvstore.push([keys[k] for k in order], [grads[k] for k in order])
        if weights is None:
            self._kvstore.pull(keys, out=grads, ignore_sparse=False)
            return
        rows = zip(keys, weights, strict=True)
        dense = [(k, out) for k, out in rows if out[0].stype == "default"]
        if dense:
            self._kvstore.pull([k for k, _ in dense], out=[out for _, out in dense])

    def _update(self, ignore_stale: bool) -> None:
        """Update weights on each context, where the store does not; all gradients are old now."""
        if not self._update_on_kvstore and self._overflows():
            return
        for number, replica in enumerate(self._layout):
            if not self._update_on_kvstore:
                part = self._fresh(replica) if ignore_stale else replica
                if part.indices:
                    self._optimizer._set_current_context(number)
                    rows = part.indices, part.grads, part.weights
                    self._updaters[number](*rows, self._pushes[number])
        self._use_up()

    def _fresh(self, replica: Replica) -> Replica:
        """Those of a replica that have a new gradient."""
        is_new = list(map(_is_fresh, replica.leaves))
        if all(is_new):
            return replica
        return Replica(*[tuple(compress(part, is_new)) for part in replica])

    # --- what is updated ------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Choose a store when first asked, and look at parameters that have changed."""
        if self._seen == changes.count and self._kv_initialized:
            return
        if not self._kv_initialized:
            self._init_kvstore()
        self._layout = self._laid_out()
        indices = self._layout[0].indices if self._layout else ()
        ages = [self._ages[k] for k in indices]
        self._push_order = sorted(range(len(indices)), key=ages.__getitem__, reverse=True)
        self._seen = changes.count

    def _init_kvstore(self) -> None:
        """Choose a store, and put the parameters into it."""
        contexts = self._contexts
        self._updaters = self._updaters or [opt.get_updater(self._optimizer) for _ in contexts]
        self._pushes = [Updates(ctx) for ctx in contexts]
        self._kvstore, self._update_on_kvstore = self._chosen(len(contexts))
        if self._kvstore is not None:
            if self._compression:
                self._kvstore.set_gradient_compression(dict(self._compression))
            if self._update_on_kvstore:
                if hasattr(self._kvstore, "set_updater"):
                    self._kvstore.set_updater(self._updaters[0])
                else:
                    self._kvstore.set_optimizer(self._optimizer)
            for number, param in enumerate(self._params):
                self._enter(number, param)
        self._kv_initialized = True

    @property
    def _params_to_init(self) -> list[Parameter]:
        """All where one has changed; classes with their own `step` call `_init_params` then."""
        is_known = self._kv_initialized and self._seen == changes.count
        return [] if is_known else list(self._params)

    def _init_params(self) -> None:
        """Have the store know all; libraries call it before they save states."""
        self._prepare()

    def _enter(self, number: int, param: Parameter) -> None:
        """Put a parameter into the store."""
        arrays = param._all(param._data)
        if not hasattr(self._kvstore, "init"):
            self._kvstore.broadcast(number, arrays[0], out=list(arrays))
            return
        self._kvstore.init(number, arrays[0])
        if param.stype == "default":
            self._kvstore.pull(number, out=list(arrays))

    def _chosen(self, count: int) -> tuple[Any, bool]:
        """The store (None where one context needs none), and whether it updates weights."""
        wanted, update = self._kvstore_params.values()
        if self._sparse:
            if update is False or wanted is None:
                expected = "a store that updates weights, which rows are pulled from"
                got = f"kvstore={wanted!r}, update_on_kvstore={update}"
                raise ParamError(complaint("Trainer", "kvstore", expected, got))
            return (kv.create(wanted) if isinstance(wanted, str) else wanted), True
        alone = isinstance(wanted, str) and count == 1 and not kv.joins_processes(wanted)
        if wanted is None or (alone and update is not True):
            if update and wanted is None:
                expected = "False without a store"
                raise ParamError(complaint("Trainer", "update_on_kvstore", expected, update))
            return None, False
        if not isinstance(wanted, (str, KVStoreBase)):
            expected = "a store, its kind or None"
            raise DTypeError(complaint("Trainer", "kvstore", expected, repr(wanted)))
        store = kv.create(wanted) if isinstance(wanted, str) else wanted
        if update is None:
            grads = all(p._grad_stype == "default" for p in self._params)
            update = grads and store.is_capable("optimizer")
        return store, bool(update)

    @property
    def _contexts(self) -> list[Any]:
        """The contexts of the parameters; ParamError where they differ."""
        found = None
        for param in self._params:
            own = param.list_ctx()
            if found is not None and own != found:
                expected = f"all on {found}, as {self._params[0].name!r}"
                got = f"{param.name!r} on {own}"
                raise ParamError(complaint("Trainer", "params", expected, got))
            found = own
        return found or []

    def _laid_out(self) -> tuple[Replica, ...]:
        """What is updated on each context."""
        trained = [(k, p) for k, p in enumerate(self._params) if p.grad_req != "null"]
        for _, param in trained:
            param._all(param._data)
        found = []
        for number in range(len(self._contexts)):
            weights = tuple(p._data[number] for _, p in trained if p._data)
            grads = tuple(p._grad[number] for _, p in trained if p._grad)
            leaves = tuple(w._tape for w in weights)
            found.append(Replica(tuple(k for k, _ in trained), grads, weights, leaves))
        return tuple(found)

    def _forget_stored(self, param: Parameter) -> None:
        """A parameter has other elements now: those in the store count no longer."""
        if self._kv_initialized and self._update_on_kvstore:
            self._kv_initialized = False

    def _row_sparse_pull(self, param: Parameter, out: Sequence[Any], row_id: Any) -> None:
        """Bring rows of a parameter up to date."""
        self._prepare()
        number = self._numbers[id(param)]
        self._kvstore.row_sparse_pull(number, out=list(out), row_ids=row_id)

    def _whole(self, param: Parameter) -> Any:
        """All rows of a parameter in row-sparse storage."""
        every = nd.arange(param.shape[0], dtype="int64") if param.shape else None
        out = nd.zeros(
            param.shape, cpu(), stype="row_sparse", dtype=param._all(param._data)[0].dtype
        )
        self._row_sparse_pull(param, [out], every)
        return out

    # --- states ---------------------------------------------------------------------------------

    def _store_has_states(self) -> bool:
        """Whether the store keeps the states: its own, or a part of them in each process."""
        return self._update_on_kvstore and (
            not hasattr(self._kvstore, "set_updater") or self._kvstore.num_workers > 1
        )

    def save_states(self, fname: str) -> None:
        """Write the optimizer with its states to a file."""
        self._prepare()
        if self._store_has_states():
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
            return
        with replacing("Trainer.save_states", fname) as stream:
            stream.write(self._updaters[0].get_states(dump_optimizer=True))

    def load_states(self, fname: str) -> None:
        """Take over the optimizer with its states from a file of `save_states`.

        Raises:
            FormatError: the file is something else, or of another optimizer or network; nothing is
                changed then, but where a store keeps the states: there it is seen in the next step.
        """
        self._prepare()
        if self._store_has_states():
            self._kvstore.load_optimizer_states(fname)
        else:
            states = read_bytes("Trainer.load_states", fname)
            for updater, replica in zip(self._updaters, self._layout, strict=True):
                weights = dict(zip(replica.indices, replica.weights, strict=True))
                with naming(fname):
                    updater.set_states(states, weights)
        self._optimizer = self._updaters[0].optimizer
        for updater in self._updaters:
            updater.optimizer = self._optimizer
        self._name_params()


def _listed(params: Any) -> list[Parameter]:
    """Parameters as a list, those of a dictionary by their names in order.

    Raises:
        ParamError: something else is among them.
        TypeError: there are none.
    """
    if hasattr(params, "keys"):
        params = [params[name] for name in sorted(params.keys())]
    if not isinstance(params, (list, tuple)):
        expected = "a dictionary or a list of Parameters"
        raise ParamError(complaint("Trainer", "params", expected, type(params).__name__))
    if not params:
        raise TypeError(complaint("Trainer", "params", "at least one Parameter", "none"))
    for number, param in enumerate(params):
        if not isinstance(param, Parameter):
            expected = "a Parameter (of collect_params())"
            raise ParamError(complaint("Trainer", f"params[{number}]", expected, shown(param)))
    return list(params)
