// The checksum of zip archives.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight {

/// CRC-32 (ISO 3309, as zip, PNG and zlib have it) of the bytes whose checksum is `crc` followed by `bytes`; 0 begins.
std::uint32_t crc32(std::uint32_t crc, const std::byte* bytes, std::size_t count);

}  // namespace rushlight
