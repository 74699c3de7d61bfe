"""The pages say what is there: paths exist, links lead somewhere, programs print what stands below them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md")])
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
ROOTS = ("", "src", "src/core", "src/rushlight", "docs")


def _text(page):
    return page.read_text(encoding="utf-8")


def _ids(pages):
    return [page.name for page in pages]


def paths(text):
    """What looks like a path of the checkout: in backticks, with a slash or a known ending."""
    ending = re.compile(r"\.(py|pyi|pyi\.in|h|cpp|md|txt|toml|in)$")
    for code in CODE.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if PATH.fullmatch(code) and (ending.search(code) or code.endswith("/") or "/" in code):
            yield code


def exists(path):
    """Below one of the roots; a file's bare name may stand for any file of the sources."""
    if "/" not in path and any((CHECKOUT / "src").rglob(path)):
        return True
    return any(list(CHECKOUT.glob(f"{root}/{path}".strip("/"))) for root in ROOTS)


def test_paths_are_recognised():
    assert list(paths("`src/core/x.h`, `a.py`, `_C`, `x = y/z`, `nn/`, `Storage::read()`")) == [
        "src/core/x.h",
        "a.py",
        "nn/",
    ]
    assert exists("src/rushlight/version.py") and exists("kernels/program.h") and exists("kernels/random*")
    assert not exists("kernels/no_such_file.h")


@pytest.mark.parametrize("page", PAGES, ids=_ids(PAGES))
def test_paths_exist(page):
    named = set(paths(_text(page)))
    assert [path for path in sorted(named) if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=_ids(PAGES))
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)\)", _text(page))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_rooms_of_the_house():
    """The listing of the architecture page: each room is a folder, each folder of the core is a room."""
    listing = re.search(r"```\n(src/core/.*?)```", _text(CHECKOUT / "docs/architecture.md"), re.DOTALL)
    assert listing
    place, rooms = "", {}
    for line in listing[1].splitlines():
        if line[0] != " ":
            place = line.split()[0]
            rooms[place] = []
        elif line[:2] == "  " and line[2] != " ":
            rooms[place] += [word for word in line.split() if word.endswith("/")]
    for place, names in rooms.items():
        assert (CHECKOUT / place).is_dir()
        assert [name for name in names if not (CHECKOUT / place / name).is_dir()] == []
    assert {f"{room.name}/" for room in (CHECKOUT / "src/core").iterdir() if room.is_dir()} == set(rooms["src/core/"])


def programs(text):
    """Python programs, each with what it prints: the indented block behind it."""
    for code, output in re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL):
        yield code, re.sub(r"^    ", "", output, flags=re.MULTILINE)


PROGRAMS = [(page.name, code, output) for page in PAGES for code, output in programs(_text(page))]


def test_the_readme_has_a_program():
    assert any(name == "README.md" for name, _, _ in PROGRAMS)


@pytest.mark.parametrize(("name", "code", "output"), PROGRAMS)
def test_programs_print_what_the_page_says(name, code, output):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode, done.stderr) == (output, 0, ""), name


def commands(text):
    """Commands of the page that can be tried anywhere: those of `rushlight` without a program of the reader's."""
    for line in re.findall(r"^    (?:\$ )?(rushlight .*)$", text, re.MULTILINE):
        words = line.split("#")[0].split()[1:]
        if words[0] in ("info", "--version") or words[:3] == ["run", "-m", "pytest"]:
            yield words


COMMANDS = [words for page in PAGES for words in commands(_text(page))]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_of_the_pages_exist(words):
    words = ["run", "-m", "pytest", "--version"] if words[0] == "run" else words
    done = subprocess.run([sys.executable, "-m", "rushlight", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_changelog_is_about_this_version():
    from rushlight.version import VERSION

    assert f"\n## {VERSION}" in _text(CHECKOUT / "CHANGELOG.md")
