"""`Service`: a model that computes what its queue holds, on worker threads of its own.

States: *starting* (each worker binds and runs its executors), *ready*, *stopped*. `failed` is what
starting failed with. A batch in which something fails is computed again request by request, so that
only the one at fault is told so. Models have threads of their own: none waits for another's queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from gnomon.base import complaint
from gnomon.serving.batching import Job, Queue
from gnomon.serving.metrics import Metrics
from gnomon.serving.model import Model
from gnomon.serving.predictor import Predictor
from gnomon.serving.protocol import Refused
from gnomon.serving.tensors import Values

Done = tuple[Job, Any, Exception | None]  # a job, its outputs by name, or what failed


class Service:
    """A model under its name, with its queue and workers; these `deliver` what they have done."""

    def __init__(
        self, name: str, model: Model, metrics: Metrics, deliver: Callable[[list[Done]], None]
    ) -> None:
        self.name, self.model, self._metrics, self._deliver = name, model, metrics, deliver
        self.queue = Queue(model.options)
        metrics.queue.watch(self.queue.__len__, model=name)
        self.failed: Exception | None = None
        self._starting = model.options.workers
        self._started = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"serve {name} {k}", daemon=True)
            for k in range(model.options.workers)
        ]

    @property
    def ready(self) -> bool:
        """Whether every worker computes."""
        return self._started.is_set() and self.failed is None and self.queue.open

    def start(self) -> None:
        """Begin to start; `wait` tells when that is done."""
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait until the model is ready.

        Raises:
            GnomonError: what starting failed with.
        """
        self._started.wait()
        if self.failed is not None:
            raise self.failed

    def stop(self, seconds: float) -> list[Job]:
        """Let workers end, and wait for them at most so long; gives the jobs that were left."""
        left = self.queue.close()
        end = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))
        return left

    def metadata(self) -> dict[str, Any]:
        """What the protocol's metadata say of the model."""
        model = self.model
        return {
            "name": self.name,
            "versions": [model.version],
            "platform": "mxnet_gnomon",
            "inputs": [spec.described() for spec in model.inputs],
            "outputs": [spec.described() for spec in model.outputs],
        }

    def job(self, inputs: dict[str, Values], answer: Any) -> Job:
        """A job for tensors that fit the model's inputs each.

        Raises:
            Refused: they have different numbers of items, or more than a batch has.
        """
        if not self.model.options.batch:
            return Job(inputs, 1, tuple(inputs[s.name].shape for s in self.model.inputs), answer)
        most, ordered = self.model.options.max_batch, [inputs[s.name] for s in self.model.inputs]
        rows = len(ordered[0])
        for spec, values in zip(self.model.inputs, ordered, strict=True):
            if len(values) != rows:
                expected = f"{rows} items, as {self.model.inputs[0].name!r} has"
                raise Refused(400, complaint(self.name, spec.name, expected, len(values)))
        if rows > most:
            expected = f"at most {most} items"
            raise Refused(400, complaint(self.name, self.model.inputs[0].name, expected, rows))
        return Job(inputs, rows, tuple(values.shape[1:] for values in ordered), answer)

    def _work(self) -> None:
        predictor = Predictor(self.model)
        try:
            predictor.warm()
        except Exception as error:
            self.failed = error
        with self._lock:
            self._starting -= 1
            if not self._starting or self.failed:
                self._started.set()
        while self.failed is None and (jobs := self.queue.take()):
            self._compute(predictor, jobs)
            del jobs  # what waits for the next batch holds nothing

    def _compute(self, predictor: Predictor, jobs: Sequence[Job]) -> None:
        begin, shares, failure = time.perf_counter(), list[Any](), None
        try:
            shares = predictor.predict(jobs)
        except Exception as error:
            failure = error
        if failure is not None and len(jobs) > 1:
            for job in jobs:
                self._compute(predictor, [job])
            return
        self._metrics.compute.observe(time.perf_counter() - begin, model=self.name)
        self._metrics.batch_rows.observe(sum(job.rows for job in jobs), model=self.name)
        shares = shares or [None] * len(jobs)
        self._deliver([(*pair, failure) for pair in zip(jobs, shares, strict=True)])
