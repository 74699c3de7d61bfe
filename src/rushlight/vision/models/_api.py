"""Weights that belong to models, and models by name."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from rushlight.hub import load_state_dict_from_url
from rushlight.nn import Module

__all__ = ["Weights", "WeightsEnum", "get_model", "get_model_builder", "get_model_weights", "get_weight", "list_models"]

Builder = TypeVar("Builder", bound=Callable[..., Module])


@dataclass(frozen=True)
class Weights:
    """One set of weights: its address, what makes the transforms that its images need, and facts about it."""

    url: str
    transforms: Callable[..., Any]
    meta: Mapping[str, Any]


class WeightsEnum(Enum):
    """Base of the sets of weights of one model; the members are :class:`Weights`."""

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """The member that ``obj`` is or names; None for None.

        Raises:
            TypeError: it is something else.
            KeyError: there is no member of that name.
        """
        if isinstance(obj, str):
            return cls[obj.replace(cls.__name__ + ".", "")]
        if obj is not None and not isinstance(obj, cls):
            raise TypeError(
                f"Invalid Weight class provided; expected {cls.__name__} but received {obj.__class__.__name__}."
            )
        return obj

    def get_state_dict(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        """Loads the weights, from the cache or the network; the arguments are those of ``load_state_dict_from_url``."""
        return load_state_dict_from_url(self.url, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self._name_}"

    @property
    def url(self) -> str:
        """The address of the file."""
        return str(self.value.url)

    @property
    def transforms(self) -> Callable[..., Any]:
        """Makes the transforms that images need."""
        function: Callable[..., Any] = self.value.transforms
        return function

    @property
    def meta(self) -> Mapping[str, Any]:
        """Facts about the weights."""
        facts: Mapping[str, Any] = self.value.meta
        return facts


_BUILDERS: dict[str, Callable[..., Module]] = {}
_WEIGHTS: dict[str, type[WeightsEnum]] = {}


def model_builder(legacy: WeightsEnum) -> Callable[[Builder], Builder]:
    """Registers the function that builds a model, and lets it take what it took before there were sets of weights.

    ``legacy`` is what ``pretrained=True`` means.
    """

    def decorator(build: Builder) -> Builder:
        name = build.__name__
        positional = list(inspect.signature(build).parameters)[:2]

        @functools.wraps(build)
        def builder(*args: Any, **kwargs: Any) -> Module:
            if args:
                used = positional[: len(args)]
                warnings.warn(
                    f"Using {' and '.join(repr(p) for p in used)} as positional parameter(s) is deprecated since 0.13 "
                    "and may be removed in the future. Please use keyword parameter(s) instead.",
                    stacklevel=2,
                )
                kwargs.update(zip(used, args, strict=True))
            if "pretrained" in kwargs or not isinstance(kwargs.get("weights"), (WeightsEnum, str, type(None))):
                _take_pretrained(kwargs, legacy)
            return build(**kwargs)

        _BUILDERS[name] = builder
        _WEIGHTS[name] = type(legacy)
        return builder  # type: ignore[return-value]

    return decorator


def _take_pretrained(kwargs: dict[str, Any], legacy: WeightsEnum) -> None:
    """Turns ``pretrained``, or a flag in the place of ``weights``, into weights."""
    if "pretrained" in kwargs:
        warnings.warn(
            "The parameter 'pretrained' is deprecated since 0.13 and may be removed in the future, please use "
            "'weights' instead.",
            stacklevel=3,
        )
        flag = kwargs.pop("pretrained")
    else:
        flag = kwargs["weights"]
    kwargs["weights"] = legacy if flag else None
    message = (
        "Arguments other than a weight enum or `None` for 'weights' are deprecated since 0.13 and may be removed in "
        f"the future. The current behavior is equivalent to passing `weights={kwargs['weights']}`."
    )
    if flag:
        message += f" You can also use `weights={type(legacy).__name__}.DEFAULT` to get the most up-to-date weights."
    warnings.warn(message, stacklevel=3)


def list_models() -> list[str]:
    """The names of all models."""
    return sorted(_BUILDERS)


def get_model_builder(name: str) -> Callable[..., Module]:
    """The function that builds the model of that name.

    Raises:
        ValueError: there is no such model.
    """
    try:
        return _BUILDERS[name.lower()]
    except KeyError:
        raise ValueError(f"Unknown model {name.lower()}") from None


def get_model(name: str, **config: Any) -> Module:
    """Builds the model of that name."""
    return get_model_builder(name)(**config)


def get_model_weights(name: Callable[..., Module] | str) -> type[WeightsEnum]:
    """The sets of weights of a model, which is given by its name or the function that builds it."""
    return _WEIGHTS[get_model_builder(name if isinstance(name, str) else name.__name__).__name__]


def get_weight(name: str) -> WeightsEnum:
    """The set of weights with a full name such as ``"ResNet50_Weights.IMAGENET1K_V1"``.

    Raises:
        ValueError: the name is no pair, or no model has such weights.
    """
    try:
        enum_name, value_name = name.split(".")
    except ValueError:
        raise ValueError(f"Invalid weight name provided: '{name}'.") from None
    for weights in _WEIGHTS.values():
        if weights.__name__ == enum_name:
            return weights[value_name]
    raise ValueError(f"The weight enum '{enum_name}' for the specific method couldn't be retrieved.")
