"""Equal seeds give equal batches: samplers and loaders draw what PyTorch's draw."""

import inspect
import random

import numpy as np
import pytest

import rushlight
import rushlight.utils.data

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

LIBRARIES = (torch, rushlight)


class Noise:
    """Samples that use every generator of random numbers that a worker seeds."""

    def __init__(self, library):
        self.library = library

    def __len__(self):
        return 21

    def __getitem__(self, index):
        return index, random.random(), np.random.rand(), self.library.rand(2)


def seed_everything(library, seed):
    random.seed(seed)
    np.random.seed(seed)
    library.manual_seed(seed)


def in_both(make):
    """What ``make`` gives for each library, with what the generators give after it."""
    results = []
    for library in LIBRARIES:
        seed_everything(library, 5)
        result = make(library)
        results.append((result, library.rand(3).tolist(), random.random(), np.random.rand()))
    return results


def lists(loader):
    return [[part.tolist() if hasattr(part, "tolist") else part for part in batch] for batch in loader]


SAMPLERS = {
    "random": lambda data, lib: data.RandomSampler(range(10)),
    "random_more": lambda data, lib: data.RandomSampler(range(10), num_samples=25),
    "random_whole_rounds": lambda data, lib: data.RandomSampler(range(10), num_samples=20),
    "replacement": lambda data, lib: data.RandomSampler(range(10), True, 70),
    "replacement_32": lambda data, lib: data.RandomSampler(range(10), True, 64),
    "generator": lambda data, lib: data.RandomSampler(range(10), generator=lib.Generator().manual_seed(3)),
    "subset": lambda data, lib: data.SubsetRandomSampler(range(3, 9)),
    "weighted": lambda data, lib: data.WeightedRandomSampler([1, 2, 3.0], 8),
    "weighted_once": lambda data, lib: data.WeightedRandomSampler([1, 2, 3.0], 3, False),
    "batches": lambda data, lib: data.BatchSampler(data.RandomSampler(range(10)), 3, False),
    "distributed": lambda data, lib: data.DistributedSampler(range(10), 3, 1),
    "distributed_cut": lambda data, lib: data.DistributedSampler(range(10), 3, 2, drop_last=True, seed=4),
    "distributed_few": lambda data, lib: data.DistributedSampler(range(2), 5, 4, shuffle=False),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    def make(library):
        sampler = SAMPLERS[name](library.utils.data, library)
        return list(sampler), list(sampler), len(sampler)

    theirs, ours = in_both(make)
    assert ours == theirs


@pytest.mark.parametrize("lengths", [[3, 7], [0.33, 0.33, 0.34], [0.5, 0.5]], ids=str)
def test_random_split(lengths):
    theirs, ours = in_both(lambda lib: [part.indices for part in lib.utils.data.random_split(range(10), lengths)])
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "generator": 9},
        {"shuffle": True, "num_workers": 2},
        {"shuffle": True, "num_workers": 2, "generator": 9},
        {"shuffle": True, "num_workers": 2, "persistent_workers": True},
        {"shuffle": True, "num_workers": 3, "prefetch_factor": 5, "drop_last": True},
        {"num_workers": 1, "batch_size": None},
    ],
    ids=str,
)
def test_loaders(options):
    def make(library):
        given = {"batch_size": 4, **options}
        if "generator" in given:
            given["generator"] = library.Generator().manual_seed(given["generator"])
        loader = library.utils.data.DataLoader(Noise(library), **given)
        return [lists(loader) for _ in range(2)]

    theirs, ours = in_both(make)
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 2},
        {"batch_size": None},
        {"batch_size": 2, "num_workers": 3},
        {"batch_size": 2, "num_workers": 4, "drop_last": True},
        {"batch_size": None, "num_workers": 2},
        {"batch_size": 2, "num_workers": 3, "persistent_workers": True, "prefetch_factor": 1},
    ],
    ids=str,
)
def test_iterable(options):
    def make(library):
        data = library.utils.data

        class Shard(data.IterableDataset):
            def __iter__(self):
                info = data.get_worker_info()
                first, count = (info.id * 100, [7, 3, 9, 5][info.id]) if info else (900, 10)
                return iter(range(first, first + count))

        loader = data.DataLoader(Shard(), **options)
        return [[b.tolist() if hasattr(b, "tolist") else b for b in loader] for _ in range(2)]

    theirs, ours = in_both(make)
    assert ours == theirs


def test_signatures():
    for name in torch.utils.data.__all__:
        if not hasattr(rushlight.utils.data, name) or not inspect.isclass(getattr(torch.utils.data, name)):
            continue
        ours, theirs = (inspect.signature(getattr(lib.utils.data, name).__init__) for lib in (rushlight, torch))
        assert list(ours.parameters) == list(theirs.parameters), name
        for parameter in ours.parameters.values():
            assert parameter.default == theirs.parameters[parameter.name].default, name


def test_names():
    datapipes = {
        "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
        "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
    }  # fmt: skip
    assert set(torch.utils.data.__all__) - set(rushlight.utils.data.__all__) == datapipes
