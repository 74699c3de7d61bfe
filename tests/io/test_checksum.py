"""The checksum of zip archives: zlib's, by whatever instructions this CPU has."""

import os
import random
import subprocess
import sys
import zlib

import pytest

from rushlight.io.checksum import crc32, extended

LENGTHS = [0, 1, 3, 7, 8, 15, 16, 17, 63, 64, 65, 79, 80, 127, 128, 129, 191, 192, 1000, 4096, 100_003]


@pytest.mark.parametrize("length", LENGTHS)
def test_it_is_that_of_zlib(length):
    data = random.Random(length).randbytes(length + 3)
    for offset in range(3):  # not aligned either
        part = memoryview(data)[offset : offset + length]
        assert crc32(part) == zlib.crc32(part)
        assert extended(0xDEADBEEF, part) == zlib.crc32(part, 0xDEADBEEF)


def test_parts_are_summed_as_one():
    data = random.Random(0).randbytes(1000)
    assert crc32(data[:10], b"", bytearray(data[10:700]), data[700:]) == zlib.crc32(data)
    assert crc32() == 0
    assert crc32(b"123456789") == 0xCBF43926  # the check value of the standard


def test_without_the_instructions():
    """On a CPU that cannot multiply without carry, tables give the same."""
    program = (
        "import random, zlib\nfrom rushlight.io.checksum import crc32\n"
        f"for n in {LENGTHS}:\n    data = random.Random(n).randbytes(n)\n    assert crc32(data) == zlib.crc32(data), n\n"
        "print('equal')"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "RUSHLIGHT_ISA": "baseline"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.stdout == "equal\n", finished.stderr


def test_what_is_no_bytes_is_refused():
    with pytest.raises(TypeError, match="bytes-like"):
        crc32("text")
