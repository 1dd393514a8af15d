"""Training in several processes."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__, names={
    "CountFilterEntry": "argosy.fleet.entries:CountFilterEntry",
    "InMemoryDataset": "argosy.dataset:InMemoryDataset",
    "ParallelEnv": "argosy.fleet.environment:ParallelEnv",
    "ProbabilityEntry": "argosy.fleet.entries:ProbabilityEntry",
    "QueueDataset": "argosy.dataset:QueueDataset",
    "ShowClickEntry": "argosy.fleet.entries:ShowClickEntry",
    "get_rank": "argosy.fleet.environment:get_rank",
    "get_world_size": "argosy.fleet.environment:get_world_size",
})
