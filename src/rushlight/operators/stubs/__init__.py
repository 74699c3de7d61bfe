"""The files that are derived from the registry and committed: `python -m rushlight.operators.stubs` writes them.

The type stubs of the core and of packages that only gather names, and the page of operators. A test
(tests/operators/test_derived_files.py) compares the committed files with what this package gives.
"""

from __future__ import annotations

from pathlib import Path

from .core import core_stub
from .package import PackageStub
from .page import operators_page

PACKAGES = ("rushlight", "rushlight.nn", "rushlight.nn.functional", "rushlight.nn.utils")


def derived_files(checkout: Path) -> dict[str, str]:
    """Path in the checkout and content of every file that is derived."""
    files = {"src/rushlight/_C.pyi": core_stub(), "docs/operators.md": operators_page(checkout)}
    for name in PACKAGES:
        files[f"src/{name.replace('.', '/')}/__init__.pyi"] = PackageStub(name).text()
    return files
