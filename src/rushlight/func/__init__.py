"""Functional programming: modules as functions of their parameters."""

from .stateless import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
