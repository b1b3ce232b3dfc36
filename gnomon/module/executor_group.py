"""One executor per device, each with its part of every batch.

State: `execs` are the executors for the shapes bound last; `_bound` keeps those of other shapes,
which share all parameters, so that batch sizes that come in turn are bound once each.
`slices[i]` is the part of the batch that device `i` works on. The lists `param_arrays`,
`grad_arrays`, `aux_arrays`, `data_arrays`, `label_arrays` hold, per name, one array per device.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import GnomonError, ParamError, ShapeError, complaint
from gnomon.context import cpu
from gnomon.io import DataDesc
from gnomon.module.inputs import as_desc, labels_of
from gnomon.module.store import trained, update_beside_store, update_on_store
from gnomon.ndarray.core.bounded_cache import BoundedCache

GROUP = "DataParallelExecutorGroup"
KEPT_SHAPES = 128  # 2 MB each for LeNet, 5 MB for ResNet-20


def split_batch(batch_size: int, work_load: Sequence[float]) -> list[slice]:
    """Rows of a batch for each device, in proportion to its work load.

    >>> split_batch(10, [1, 1, 1])
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    total = sum(work_load)
    counts = [round(load * batch_size / total) for load in work_load]
    counts[-1] += batch_size - sum(counts)
    ends = [min(sum(counts[: i + 1]), batch_size) for i in range(len(counts))]
    slices = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if any(part.start >= part.stop for part in slices):
        expected = f"at least a row for each of {len(slices)} devices"
        raise ShapeError(complaint("split_batch", "batch_size", expected, batch_size))
    return slices


class DataParallelExecutorGroup:
    """Executors of one symbol on several devices, fed with slices of each batch."""

    def __init__(
        self,
        symbol: Any,
        contexts: Sequence[Any],
        workload: Sequence[float] | None,
        data_shapes: Sequence[Any],
        label_shapes: Sequence[Any] | None,
        param_names: Sequence[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: Sequence[str] | None = None,
        grad_req: Any = "write",
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
    ) -> None:
        data_shapes = [as_desc(each) for each in data_shapes]
        label_shapes = [as_desc(each) for each in label_shapes or ()]
        self.symbol = symbol
        self.contexts = list(contexts)
        self.workload = list(workload or [1] * len(self.contexts))
        self.arg_names = symbol.list_arguments()
        self.aux_names = symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.param_names = list(param_names)
        self.state_names = list(state_names or [])
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self.logger = logger
        self.shared_group = shared_group
        self.group2ctxs = _per_device(group2ctxs, len(self.contexts))
        self.grad_req = self._requests(
            grad_req, [desc.name for desc in data_shapes], set(fixed_param_names or [])
        )
        layouts = (symbol[name].attr("__layout__") for name in self.output_names)
        self.output_layouts = [DataDesc.get_batch_axis(layout) for layout in layouts]
        self._bound: dict[Any, list[Any]] = {}
        self.shared_data_arrays: list[dict[str, Any]] = (
            [{} for _ in self.contexts] if shared_group is None else shared_group.shared_data_arrays
        )
        self._monitor: Any = None
        self.bind_exec(data_shapes, label_shapes, shared_group)

    def _requests(
        self, grad_req: Any, data_names: Sequence[str], fixed: set[str]
    ) -> dict[str, str]:
        """What to do with the gradient of each argument."""
        named = dict(zip(self.arg_names, grad_req, strict=True)) if _listed(grad_req) else grad_req
        requests = {}
        for name in self.arg_names:
            wanted = named.get(name, "write") if isinstance(named, Mapping) else named
            is_param = name in self.param_names and name not in fixed
            is_input = name in data_names and self.inputs_need_grad
            requests[name] = wanted if self.for_training and (is_param or is_input) else "null"
        return requests

    # Binding

    def bind_exec(
        self,
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc] | None,
        shared_group: DataParallelExecutorGroup | None = None,
        reshape: bool = False,
    ) -> None:
        """Bind, or with `reshape` rebind, to inputs of these shapes."""
        batch_size, slices = self.decide_slices([*data_shapes, *(label_shapes or ())])
        key = tuple((d.name, tuple(d.shape)) for d in [*data_shapes, *(label_shapes or ())])
        if not reshape:
            self._bound, self._kept = {}, BoundedCache(KEPT_SHAPES)
        if key not in self._bound:
            made = [
                self._bind_one(i, part, data_shapes, label_shapes, shared_group)
                for i, part in enumerate(slices)
            ]
            self._kept.put(self._bound, key, made)
        if self._monitor is not None:
            for each in self.execs:
                self._monitor.uninstall(each)
        self.execs = self._bound[key]
        self.batch_size, self.slices = batch_size, slices
        self.data_shapes, self.label_shapes = list(data_shapes), list(label_shapes or [])
        self._collect_arrays()
        if self._monitor is not None:
            self.install_monitor(self._monitor)

    def reshape(
        self, data_shapes: Sequence[DataDesc], label_shapes: Sequence[DataDesc] | None
    ) -> None:
        """Rebind to inputs of other shapes, keeping the parameters."""
        if list(data_shapes) == self.data_shapes and list(label_shapes or []) == self.label_shapes:
            return
        self.bind_exec(data_shapes, label_shapes, reshape=True)

    def decide_slices(self, data_shapes: Sequence[DataDesc]) -> tuple[int, list[slice]]:
        """Batch size and the devices' parts of it; ShapeError when inputs differ in batch size."""
        batch_size = None
        for desc in data_shapes:
            axis = DataDesc.get_batch_axis(desc.layout)
            if axis < 0 or not desc.shape:
                continue
            size = desc.shape[axis]
            if batch_size not in (None, size):
                expected = f"batch size {batch_size} on axis {axis}"
                raise ShapeError(complaint(GROUP, desc.name, expected, desc.shape))
            batch_size = size
        if batch_size is None:
            raise ShapeError(complaint(GROUP, "data_shapes", "an input with a batch axis", None))
        return batch_size, split_batch(batch_size, self.workload)

    def _bind_one(
        self,
        device: int,
        part: slice,
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc] | None,
        shared_group: DataParallelExecutorGroup | None,
    ) -> Any:
        inputs = [*data_shapes, *(label_shapes or ())]
        shapes = {desc.name: _sliced_shape(desc, part) for desc in inputs}
        if self._bound:
            base = max((execs[device] for execs in self._bound.values()), key=_room)
            # Without labels, their shapes follow from the data's; parameters keep theirs.
            shapes.update((name, base.arg_dict[name].shape) for name in self.param_names)
            return base.reshape(partial_shaping=not label_shapes, allow_up_sizing=True, **shapes)
        sharing: dict[str, Any] = {"shared_buffer": self.shared_data_arrays[device]}
        if shared_group is not None:
            sharing["shared_exec"] = shared_group.execs[device]
            sharing["shared_arg_names"] = self.param_names
        return self.symbol.simple_bind(
            ctx=self.contexts[device],
            grad_req=self.grad_req,
            type_dict={desc.name: desc.dtype for desc in inputs},
            group2ctx=self.group2ctxs[device],
            **sharing,
            **shapes,
        )

    def _collect_arrays(self) -> None:
        params = [name for name in self.arg_names if name in self.param_names]
        self.param_arrays = self._arrays("arg_dict", params)
        self.grad_arrays = self._arrays("grad_dict", params)
        self.aux_arrays = self._arrays("aux_dict", self.aux_names)
        self.state_arrays = self._arrays("arg_dict", self.state_names)
        self.data_arrays = self._arrays("arg_dict", [desc.name for desc in self.data_shapes])
        self._label_places = self._arrays("arg_dict", [desc.name for desc in self.label_shapes])
        self.label_arrays = [places for places in self._label_places if places[0] is not None]
        # A group that shares parameters gives them the numbers that the other one does: optimizers
        # keep states by number, and another symbol may have the names in another order.
        self.numbers = (
            {name: number for number, name in enumerate(params)}
            if self.shared_group is None
            else self.shared_group.numbers
        )
        order = [self.numbers[name] for name in params]
        self.trained = trained(params, order, self.param_arrays, self.grad_arrays)

    def _arrays(self, table: str, names: Sequence[str]) -> list[list[Any]]:
        tables = [getattr(each, table) for each in self.execs]
        return [[found.get(name) for found in tables] for name in names]

    # Parameters

    def set_params(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any],
        allow_extra: bool = False,
    ) -> None:
        """Copy parameters and auxiliary states to all devices."""
        for each in self.execs:
            each.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Copy the mean over the devices into the given arrays."""
        params = [name for name in self.arg_names if name in self.param_names]
        for name, copies in zip(params, self.param_arrays, strict=True):
            _mean_into(copies, arg_params[name])
        for name, copies in zip(self.aux_names, self.aux_arrays, strict=True):
            _mean_into(copies, aux_params[name])

    # Running

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, copied to the devices."""
        train = self.for_training if is_train is None else is_train
        for each, feeds in zip(self.execs, self._feeds(data_batch), strict=True):
            each.forward_on(feeds, train)

    def forward_backward(self, data_batch: Any) -> None:
        """Compute the outputs and gradients of a batch whose outputs are losses."""
        self._need_gradients()
        for each, feeds in zip(self.execs, self._feeds(data_batch), strict=True):
            each.forward_backward(feeds)

    def update(self, store: Any, updater: Any) -> None:
        """Change the parameters by the gradients: in one native call with these, where it is legal.

        The store updates where there is no `updater`.
        """
        if updater is None:
            update_on_store(store, self.trained)
        else:
            update_beside_store(store, updater, self.trained, self.execs[0].follow)

    def _feeds(self, batch: Any) -> list[list[tuple[Any, Any]]]:
        """For each device what is copied: pairs of a bound array, and its part of the batch."""
        pairs = _pairs("data", batch.data, self.data_shapes, self.data_arrays)
        labels = labels_of(batch)
        if labels and self.label_shapes:
            pairs += _pairs("label", labels, self.label_shapes, self._label_places)
        if len(self.execs) == 1:
            return [[(places[0], array) for _, places, array in pairs]]
        axes = [DataDesc.get_batch_axis(desc.layout) for desc, _, _ in pairs]
        return [
            [(p[k], _cut(x, axis, part)) for axis, (_, p, x) in zip(axes, pairs, strict=True)]
            for k, part in enumerate(self.slices)
        ]

    def _need_gradients(self) -> None:
        if not self.for_training:
            raise GnomonError("Module.backward: bind with for_training=True to train")

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients, given those of the outputs unless these are losses."""
        self._need_gradients()
        if out_grads is None:
            out_grads = []
        out_grads = list(out_grads) if _listed(out_grads) else [out_grads]
        whole = len(self.execs) == 1
        for each, part in zip(self.execs, self.slices, strict=True):
            pairs = zip(out_grads, self.output_layouts, strict=False)
            grads = [g if whole else _sliced(g, axis, part, each) for g, axis in pairs]
            each.backward(out_grads=grads or None)

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of each output for the whole batch."""
        shapes = []
        for i, (name, axis) in enumerate(zip(self.output_names, self.output_layouts, strict=True)):
            shape = list(self.execs[0].outputs[i].shape)
            if axis >= 0 and shape:
                shape[axis] = sum(each.outputs[i].shape[axis] for each in self.execs)
            shapes.append((name, tuple(shape)))
        return shapes

    def get_outputs(
        self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None
    ) -> list[Any]:
        """Outputs `begin` to `end`, joined over the devices, or a list per device for each."""
        chosen = range(len(self.output_names))[begin:end]
        outputs = [[each.outputs[i] for each in self.execs] for i in chosen]
        if not merge_multi_context:
            return outputs
        axes = self.output_layouts[begin:end]
        return [_joined(parts, axis) for parts, axis in zip(outputs, axes, strict=True)]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data inputs, joined over the devices."""
        if not self.inputs_need_grad:
            raise GnomonError("Module.get_input_grads: bind with inputs_need_grad=True")
        grads = self._arrays("grad_dict", [desc.name for desc in self.data_shapes])
        if not merge_multi_context:
            return grads
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in self.data_shapes]
        return [_joined(parts, axis) for parts, axis in zip(grads, axes, strict=True)]

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """States, joined over the devices."""
        if not merge_multi_context:
            return self.state_arrays
        return [_joined(parts, 0) for parts in self.state_arrays]

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Copy `states` (a list per device for each) or one number into the states."""
        if (states is None) == (value is None):
            raise ParamError(
                complaint("Module.set_states", "states", "either states or a value", states)
            )
        for i, arrays in enumerate(self.state_arrays):
            for device, array in enumerate(arrays):
                array[:] = value if states is None else states[i][device]

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool) -> None:
        """Count each device's outputs against its part of the labels."""
        names = [desc.name for desc in self.label_shapes]
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in self.label_shapes]
        for i, (each, part) in enumerate(zip(self.execs, self.slices, strict=True)):
            mine = labels[i] if pre_sliced else labels or []
            if not pre_sliced and len(self.execs) > 1:
                mine = [_cut(a, axis, part) for a, axis in zip(mine, axes, strict=True)]
            outputs = OrderedDict(zip(self.output_names, each.outputs, strict=True))
            eval_metric.update_dict(OrderedDict(zip(names, mine, strict=False)), outputs)

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor watch all executors."""
        self._monitor = mon
        for each in self.execs:
            mon.install(each)


def _room(executor: Any) -> int:
    """How large the arrays are that executors of other shapes may use a part of."""
    return sum(array.size for array in (*executor.arg_arrays, *executor.outputs))


def _listed(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _per_device(group2ctxs: Any, count: int) -> list[Any]:
    """A mapping group -> device for each device from the ways of writing them."""
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, Mapping):
        spread = {name: c if _listed(c) else [c] * count for name, c in group2ctxs.items()}
        return [{name: c[i % len(c)] for name, c in spread.items()} for i in range(count)]
    if len(group2ctxs) != count:
        raise ParamError(complaint("Module", "group2ctxs", f"{count} mappings", len(group2ctxs)))
    return list(group2ctxs)


def _sliced_shape(desc: DataDesc, part: slice) -> tuple[int, ...]:
    shape = list(desc.shape)
    axis = DataDesc.get_batch_axis(desc.layout)
    if axis >= 0 and shape:
        shape[axis] = part.stop - part.start
    return tuple(shape)


def _cut(array: Any, axis: int, part: slice) -> Any:
    if axis < 0:
        return array
    if axis == 0:
        return array[part]
    return nd.slice_axis(array, axis=axis, begin=part.start, end=part.stop)


def _sliced(array: Any, axis: int, part: slice, executor: Any) -> Any:
    return _cut(array, axis, part).as_in_context(executor.outputs[0].context)


def _joined(parts: Sequence[Any], axis: int) -> Any:
    if len(parts) == 1 or axis < 0:
        return parts[0]
    home = parts[0].context
    return nd.concat(*[part.as_in_context(home) for part in parts], dim=axis)


def _pairs(
    argument: str,
    arrays: Sequence[Any],
    descs: Sequence[DataDesc],
    places: Sequence[Sequence[Any]],
) -> list[tuple[DataDesc, Sequence[Any], Any]]:
    """Each array of a batch with its description and the bound arrays of all devices."""
    if len(arrays) != len(descs):
        names = [desc.name for desc in descs]
        raise ParamError(complaint("Module.forward", argument, f"arrays for {names}", len(arrays)))
    # a label that only metrics look at has no place
    return [row for row in zip(descs, places, arrays, strict=True) if row[1][0] is not None]


def _mean_into(copies: Sequence[Any], target: Any) -> None:
    if len(copies) == 1:
        copies[0].copyto(target)
        return
    total = copies[0].as_in_context(cpu())
    for each in copies[1:]:
        total = total + each.as_in_context(cpu())
    (total / len(copies)).copyto(target)
