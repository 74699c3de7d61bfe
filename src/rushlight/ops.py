"""PyTorch's names of operators by namespace and overload (``torch.ops``).

``ops.aten.mm.default`` is ``rushlight.mm``, ``ops.aten.add_.Tensor`` is ``Tensor.add_``: overloads are not told apart.
"""

from typing import Any

import rushlight
from rushlight import _C
from rushlight._missing import missing_message

__all__ = ["aten"]


class _Packet:
    """One operator under all names of its overloads: ``default``, ``Tensor``, ``out``, ..."""

    def __init__(self, op: Any) -> None:
        self._op = op
        self.__name__ = op.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self._op

    def __repr__(self) -> str:
        return f"<operator aten.{self.__name__}>"


class _Namespace:
    def __getattr__(self, name: str) -> _Packet:
        for home in (rushlight, rushlight.Tensor, _C._nn):
            op = vars(home).get(name)
            if isinstance(op, _C.Operator):
                packet = _Packet(op)
                setattr(self, name, packet)
                return packet
        raise AttributeError(missing_message(f"torch.ops.aten.{name}", tuple(_C._operator_names)))


aten = _Namespace()
