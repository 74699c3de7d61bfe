"""How samples become a batch."""

from __future__ import annotations

import collections.abc
import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import rushlight

__all__ = ["collate", "default_collate", "default_collate_err_msg_format", "default_collate_fn_map", "default_convert"]

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

_CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]
_numpy_functions_added = False


def default_convert(data: Any) -> Any:
    """``data`` with its NumPy arrays and scalars as tensors, through mappings, sequences and named tuples."""
    if isinstance(data, rushlight.Tensor):
        return data
    kind = type(data)
    if kind.__module__ == "numpy":
        if kind.__name__ == "ndarray" and data.dtype.kind in "SUO":
            return data
        if kind.__name__ not in ("str_", "bytes_"):
            return rushlight.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


def _like_mapping(example: Any, values: dict[Any, Any]) -> Any:
    """``values`` in a mapping of the type of ``example``, or in a dictionary if that cannot be made."""
    try:
        if isinstance(example, MutableMapping):
            result = copy.copy(example)
            result.update(values)
            return result
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _like_sequence(example: Any, values: list[Any]) -> Any:
    """``values`` in a sequence of the type of ``example``, or in a list if that cannot be made."""
    if type(example) is list:
        return values
    try:
        if isinstance(example, MutableSequence):
            result = copy.copy(example)
            for i, value in enumerate(values):
                result[i] = value
            return result
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def collate(batch: Any, *, collate_fn_map: Mapping[Any, Callable[..., Any]] | None = None) -> Any:
    """The batch of a list of samples: ``collate_fn_map`` says how for a type, containers are gone through.

    Raises ``TypeError`` for samples of a type that nothing knows and ``RuntimeError`` for sequences of different
    lengths.
    """
    element = batch[0]
    kind = type(element)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(element, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(element, Mapping):
        columns = {key: [sample[key] for sample in batch] for key in element}
        values = {key: collate(column, collate_fn_map=collate_fn_map) for key, column in columns.items()}
        return _like_mapping(element, values)
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)))
    if isinstance(element, collections.abc.Sequence):
        if not all(len(sample) == len(element) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        values_list = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return values_list if isinstance(element, tuple) else _like_sequence(element, values_list)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _collate_tensors(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return rushlight.stack(tuple(batch), 0)


def _collate_floats(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return rushlight.tensor(batch, dtype=rushlight.float64)


def _collate_numbers(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return rushlight.tensor(batch)


def _collate_strings(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return batch


def _collate_arrays(batch: Any, *, collate_fn_map: Any = None) -> Any:
    if batch[0].dtype.kind in "SUO":
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return default_collate([rushlight.as_tensor(array) for array in batch])


def _collate_numpy_scalars(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return rushlight.as_tensor(batch)


default_collate_fn_map: _CollateMap = {
    rushlight.Tensor: _collate_tensors,
    float: _collate_floats,
    int: _collate_numbers,
    str: _collate_strings,
    bytes: _collate_strings,
}


def _add_numpy_functions() -> None:
    """Add what is done with NumPy's types, once; the package does not import NumPy only to know them."""
    global _numpy_functions_added
    import numpy

    _numpy_functions_added = True
    default_collate_fn_map[numpy.ndarray] = _collate_arrays
    default_collate_fn_map[numpy.bool_, numpy.number, numpy.object_] = _collate_numpy_scalars


def default_collate(batch: Any) -> Any:
    """The batch of a list of samples: tensors are stacked, numbers become tensors, containers are gone through.

    Strings stay a list; mappings and sequences keep their type where they can. Raises ``TypeError`` for samples of
    any other type and ``RuntimeError`` for tensors or sequences that do not fit together.
    """
    if type(batch[0]) not in default_collate_fn_map and not _numpy_functions_added:
        _add_numpy_functions()
    return collate(batch, collate_fn_map=default_collate_fn_map)
