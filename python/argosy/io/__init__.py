"""Data sets, samplers and the loader that makes batches of them."""

from argosy.io._collate import default_collate_fn, default_convert_fn
from argosy.io._dataset import (ChainDataset, ComposeDataset, ConcatDataset, Dataset,
                                IterableDataset, Subset, TensorDataset, random_split)
from argosy.io._generator_loader import GeneratorLoader
from argosy.io._loader import DataLoader
from argosy.io._sampler import (BatchSampler, DistributedBatchSampler, RandomSampler, Sampler,
                                SequenceSampler, SubsetRandomSampler, WeightedRandomSampler)
from argosy.io._worker_info import WorkerInfo, get_worker_info

__all__ = ["BatchSampler", "ChainDataset", "ComposeDataset", "ConcatDataset", "DataLoader",
           "Dataset", "DistributedBatchSampler", "GeneratorLoader", "IterableDataset",
           "RandomSampler", "Sampler", "SequenceSampler", "Subset", "SubsetRandomSampler",
           "TensorDataset", "WeightedRandomSampler", "WorkerInfo", "default_collate_fn",
           "default_convert_fn", "get_worker_info", "random_split", ]
