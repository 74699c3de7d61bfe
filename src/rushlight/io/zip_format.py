"""The fixed parts of a zip file (PKWARE's APPNOTE 6.3.10), as far as checkpoints use them.

Names follow the note: a *local header* precedes each record's data, a *central header* describes the record again in
the directory at the end, and the *end record* (with its 64-bit companion and the locator of that) closes the file.
"""

from __future__ import annotations

from struct import Struct

LOCAL_SIGNATURE = b"PK\x03\x04"
CENTRAL_SIGNATURE = b"PK\x01\x02"
END_SIGNATURE = b"PK\x05\x06"
END64_SIGNATURE = b"PK\x06\x06"
LOCATOR64_SIGNATURE = b"PK\x06\x07"

# signature, version needed, flags, method, time, date, crc, compressed size, size, name length, extra length
LOCAL_HEADER = Struct("<4s5H3I2H")
# signature, version made by, version needed, flags, method, time, date, crc, compressed size, size, name length,
# extra length, comment length, disk, internal attributes, external attributes, offset of the local header
CENTRAL_HEADER = Struct("<4s6H3I5H2I")
# signature, disk, disk of the directory, records here, records, directory size, directory offset, comment length
END_RECORD = Struct("<4s4H2IH")
# signature, size of the rest, version made by, version needed, disk, disk of the directory, records here, records,
# directory size, directory offset
END64_RECORD = Struct("<4sQ2H2I4Q")
# signature, disk of the 64-bit end record, its offset, number of disks
LOCATOR64 = Struct("<4sIQI")

EXTRA_FIELD = Struct("<2H")
ZIP64_EXTRA = 0x0001
PADDING_EXTRA = 0x4246  # "FB": the field PyTorch pads its local headers with, so that data begins at a multiple of 64

STORED = 0
DEFLATED = 8

FLAG_ENCRYPTED = 0x0001
FLAG_UTF8 = 0x0800

LIMIT16 = 0xFFFF
LIMIT32 = 0xFFFFFFFF
LONGEST_COMMENT = 0xFFFF
