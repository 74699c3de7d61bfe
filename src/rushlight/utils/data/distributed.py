"""A sampler that gives each of several processes its part of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import rushlight

from .dataset import Dataset
from .sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every ``num_replicas``-th index from ``rank`` on, of a permutation that all processes share.

    The dataset's length is padded with its first indices to a multiple of ``num_replicas``, or cut with ``drop_last``.
    ``set_epoch`` gives each epoch its own permutation. Raises ``ValueError`` for a rank outside of the replicas and
    ``RuntimeError`` when rank or replicas are left out and there is no process group to ask.
    """

    def __init__(
        self,
        dataset: Dataset[_T_co],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            group = rushlight.distributed
            if not group.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        length = len(dataset)  # type: ignore[arg-type]
        whole_rounds = drop_last and length % num_replicas != 0
        self.num_samples = math.ceil((length - num_replicas if whole_rounds else length) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[_T_co]:
        length = len(self.dataset)  # type: ignore[arg-type]
        if self.shuffle:
            generator = rushlight.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = rushlight.randperm(length, generator=generator).tolist()
        else:
            indices = list(range(length))
        if not self.drop_last and indices:
            missing = self.total_size - len(indices)
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the permutation of the next iteration; call it with the same number in every process."""
        self.epoch = epoch
