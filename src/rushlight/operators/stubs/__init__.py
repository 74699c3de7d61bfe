"""The files that are derived from the registry and committed: `python -m rushlight.operators.stubs` writes them.

The type stubs of the core and of packages that only gather names, and the page of operators. A test
(tests/operators/test_derived_files.py) compares the committed files with what this package gives.
"""

from __future__ import annotations

from .core import core_stub
from .package import PackageStub

PACKAGES = ("rushlight", "rushlight.nn", "rushlight.nn.functional", "rushlight.nn.utils")


def derived_files() -> dict[str, str]:
    """Path in a checkout and content of every file that is derived."""
    files = {"src/rushlight/_C.pyi": core_stub()}
    for name in PACKAGES:
        files[f"src/{name.replace('.', '/')}/__init__.pyi"] = PackageStub(name).text()
    return files
