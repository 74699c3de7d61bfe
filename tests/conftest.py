"""What the tests share: the list of what PyTorch has and rushlight has not yet.

A test that meets an absent name of the list is an expected failure whose reason is that name; any other missing name,
and any wrong result, is a failure. tests/test_absent_names.py fails for a name of the list that exists, so the list
shrinks with every name that is added. What is there and does not work yet is listed test by test, and a listed test
that passes is a failure.
"""

import re

import pytest

from absent_names import ABSENT, FAILING

NAMES = re.compile(
    r"rushlight has no '[\w.]*?(?P<a>\w+)'|has no attribute '(?P<b>\w+)'|No module named 'rushlight\.(?P<c>\w+)'"
    r"|cannot import name '(?P<d>\w+)' from 'rushlight|needs rushlight\.[\w.]*?(?P<e>\w+), which this build does not have"
)


def _absent(error: BaseException | None) -> str | None:
    """Which absent thing an exception, or what it was raised from, names."""
    while error is not None:
        named = isinstance(error, AttributeError | ImportError | NotImplementedError) and NAMES.search(str(error))
        if named:
            name = next(filter(None, named.groups()))
            if name in ABSENT:
                return f"torch.{ABSENT[name]}"
        error = error.__cause__ or error.__context__
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and call.excinfo is not None:
        absent = _absent(call.excinfo.value)
        if absent is not None:
            report.outcome = "skipped"
            report.wasxfail = f"rushlight has no {absent} yet"
    return report


def pytest_collection_modifyitems(items):
    for item in items:
        for ending, reason in FAILING.items():
            if item.nodeid.endswith(ending):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
