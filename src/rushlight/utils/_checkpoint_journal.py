"""``checkpoint(..., debug=True)``: which operators ran in forward and in the recomputation, for errors of either."""

import contextlib
from collections.abc import Iterator
from typing import Any

import rushlight
from rushlight import _C
from rushlight.autograd._location import line_of

__all__ = ["Journal"]


class Journal:
    """The operators of both runs, as lines of text."""

    def __init__(self) -> None:
        self.runs: dict[str, list[str]] = {"forward": [], "recomputation": []}

    @contextlib.contextmanager
    def noting(self, run: str) -> Iterator[None]:
        lines: list[str] = []
        self.runs[run] = lines

        def note(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            result = op(*args, **kwargs)
            inputs = ", ".join([*map(_short, args), *[f"{k}={_short(v)}" for k, v in kwargs.items()]])
            lines.append(f"{_short(result)} = {op.__name__}({inputs})   at {line_of(_C._capture_place())}")
            return result

        _C._push_call_handler(note)
        try:
            yield
        finally:
            _C._pop_call_handler()

    def explain(self, error: Exception) -> str:
        """The error, the operators of both runs, and the first in which they differ."""
        first, second = self.runs["forward"], self.runs["recomputation"]
        text = (
            "An error happened while unpacking tensors; dumping logs of latest computation because you passed "
            "`debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
        )
        for title, lines in (("original forward", first), ("recomputation", second)):
            text += f"\nOperators executed during {title}:\n"
            text += "".join([f"  {i + 1} of {len(lines)}: {line}\n" for i, line in enumerate(lines)])
        differ = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
        if differ is not None:
            text += f"\nThey differ first in operator {differ + 1}.\n"
        elif len(first) != len(second):
            text += f"\nThey agree until one ends, after operator {min(len(first), len(second))}.\n"
        return f"{text}\n{error}"


def _short(value: Any) -> str:
    if isinstance(value, rushlight.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_short, value)) + ")"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
