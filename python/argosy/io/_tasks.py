"""What a worker process does: makes batches when asked."""

import random
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional

import cloudpickle
import numpy as np

from argosy.io._channel import Channel
from argosy.io._collate import arrays_of, default_collate_fn, default_convert_fn
from argosy.io._dataset import take
from argosy.io._worker_info import WorkerInfo, set_worker_info


def batch_maker(dataset: Any, collate: Optional[Callable], batched: bool) -> Callable[[Any], Any]:
    """Makes of indices (a single one if not batched) what a loader gives."""
    if not batched:
        convert = collate or default_convert_fn
        return lambda index: convert(dataset[index])
    if collate is not None:
        return lambda indices: collate([dataset[index] for index in indices])

    def make(indices: List[int]) -> Any:
        batch = take(dataset, indices)
        return batch if batch is not None else default_collate_fn([dataset[index]
                                                                   for index in indices])
    return make


def stream(dataset: Any, collate: Optional[Callable], batch_size: Optional[int],
           drop_last: bool) -> Iterator[Any]:
    """The batches of an iterable data set, or its samples where batch_size is None."""
    samples = iter(dataset)
    if batch_size is None:
        convert = collate or default_convert_fn
        for sample in samples:
            yield convert(sample)
        return
    collate = collate or default_collate_fn
    steps = range(batch_size)
    while True:
        batch = [sample for _, sample in zip(steps, samples)]
        if not batch or (drop_last and len(batch) < batch_size):
            return
        yield collate(batch)


def serve(channel: Channel, number: int, job: Dict[str, Any]) -> None:
    """Answers requests: ("start",) begins a pass, ("batch", indices) wants a batch."""
    try:
        dataset = job["dataset"]
        seed = job["seed"] + number
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        set_worker_info(WorkerInfo(number, job["workers"], dataset, seed))
        if job["init"] is not None:
            job["init"](number)
        failure = None
    except Exception as error:
        failure = _failed(error)
    make: Any = None
    while True:
        request = channel.receive()
        if request[0] == "start":
            make = None
            continue
        try:
            if failure is None and make is None:
                make = _source(job)
            answer = failure or make(request[1])
        except Exception as error:
            answer = _failed(error)
        channel.send(answer)


def _source(job: Dict[str, Any]) -> Callable[[Any], Any]:
    """Gives ("batch", batch) for what is asked, or ("end",) behind the last one."""
    if not job["iterable"]:
        make = batch_maker(job["dataset"], job["collate"], job["batch_size"] is not None)
        return lambda indices: ("batch", arrays_of(make(indices)))
    batches = stream(job["dataset"], job["collate"], job["batch_size"], job["drop_last"])

    def following(_: Any) -> Any:
        for batch in batches:
            return ("batch", arrays_of(batch))
        return ("end",)
    return following


def _failed(error: Exception) -> Any:
    """("error", the exception as far as it can travel, the traceback as text)."""
    text = traceback.format_exc()
    try:
        pickled = cloudpickle.dumps(error)
        cloudpickle.loads(pickled)
    except Exception:
        pickled = None
    return ("error", pickled, text)
