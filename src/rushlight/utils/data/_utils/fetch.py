"""How a loader gets the samples of a batch out of a dataset."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import rushlight

from ..dataset import Subset, TensorDataset
from .collate import default_collate

if TYPE_CHECKING:
    from collections.abc import Callable

    Fetch = Callable[[Any], Any]


class MapFetcher:
    """Fetches from a dataset with indices: a batch for a list of them, or one sample."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool = False
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self._take_rows = _row_taker(dataset) if auto_collation and collate_fn is default_collate else None

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self._take_rows is not None and all(type(i) is int for i in index):
            return self._take_rows(index)
        get_items = getattr(self.dataset, "__getitems__", None)
        if get_items:
            return self.collate_fn(get_items(index))
        dataset = self.dataset
        return self.collate_fn([dataset[i] for i in index])


class IterableFetcher:
    """Fetches from an iterable dataset: as many samples as the index has entries, or one.

    Raises ``StopIteration`` when there are no more, or with ``drop_last`` too few for a batch.
    """

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool = False
    ) -> None:
        self.dataset_iter = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        if self.ended:
            raise StopIteration
        samples = list(islice(self.dataset_iter, len(index)))
        self.ended = len(samples) < len(index)
        if not samples or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(samples)


def _row_taker(dataset: Any) -> Fetch | None:
    """For rows of plain tensors, a function that gives the batch of a list of indices by one selection per tensor.

    It gives what collating the single rows gives, without ever making them; None for any other dataset.
    """
    if type(dataset) is Subset:
        take = _row_taker(dataset.dataset)
        return None if take is None else lambda index: take([dataset.indices[i] for i in index])
    if type(dataset) is not TensorDataset or any(tensor.requires_grad for tensor in dataset.tensors):
        return None

    def take_rows(index: Any) -> list[rushlight.Tensor]:
        rows = rushlight.tensor(index)
        return [tensor[rows] for tensor in dataset.tensors]

    return take_rows
