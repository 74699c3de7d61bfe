"""python -m rushlight.operators.stubs: write the derived files of a checkout, or say which are out of date."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import derived_files


def main() -> None:
    """Write the derived files, or check them."""
    parser = argparse.ArgumentParser(prog="python -m rushlight.operators.stubs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file is out of date")
    parser.add_argument(
        "checkout", nargs="?", type=Path, default=Path(), help="its folder; the current one unless given"
    )
    options = parser.parse_args()
    stale = []
    for path, content in derived_files(options.checkout).items():
        file = options.checkout / path
        if file.is_file() and file.read_text(encoding="utf-8") == content:
            continue
        stale.append(path)
        if not options.check:
            file.write_text(content, encoding="utf-8")
    if stale:
        print(("out of date: " if options.check else "written: ") + ", ".join(stale))
    if stale and options.check:
        raise SystemExit(1)


main()
