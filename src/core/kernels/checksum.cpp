// CRC-32 by carry-less multiplication: V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction", Intel 2009. A checksum is a remainder of polynomials over GF(2), so a block may be replaced
// by anything of the same remainder: four lanes of 128 bits are multiplied on to the place of the next 512 bits and
// added to them, until 128 bits are left for the table. Without the instruction, eight tables take eight bytes at a
// time.
#include "kernels/checksum.h"

#include <array>
#include <cstring>

#include "kernels/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rushlight {
namespace {

// Bits are reflected: the lowest bit of a number is the coefficient of the highest power.
constexpr std::uint32_t polynomial = 0xedb88320;

constexpr std::uint32_t times_x(std::uint32_t p) { return p & 1 ? p >> 1 ^ polynomial : p >> 1; }

using Table = std::array<std::uint32_t, 256>;

/// tables[k][b]: what a byte b adds to the checksum when k more bytes follow it.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t p = b;
    for (int bit = 0; bit < 8; ++bit) p = times_x(p);
    t[0][b] = p;
  }
  for (int k = 1; k < 8; ++k)
    for (int b = 0; b < 256; ++b) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 255];
  return t;
}
constexpr auto tables = make_tables();

std::uint32_t by_table(std::uint32_t state, const std::byte* p, std::size_t n) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= state;
    state = 0;
    for (int k = 0; k < 8; ++k) state ^= tables[7 - k][word >> 8 * k & 255];
  }
#endif
  for (; n; --n) state = state >> 8 ^ tables[0][(state ^ std::uint32_t(*p++)) & 255];
  return state;
}

#if defined(__x86_64__)

/// x^n modulo the polynomial, as a factor of a carry-less product: reflected factors give a product one place too low.
constexpr long long power(int n) {
  std::uint32_t p = 1u << 31;
  while (n--) p = times_x(p);
  return static_cast<long long>(p) << 1;
}

/// `lane` moved on by the number of bits that `by` stands for, and `next` added.
[[gnu::target("pclmul,sse4.1")]] inline __m128i fold(__m128i lane, __m128i by, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(lane, by, 0x00), high = _mm_clmulepi64_si128(lane, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

[[gnu::target("pclmul,sse4.1")]] inline __m128i load(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

/// For n of at least 64, of which what does not fill a lane is left to the table.
[[gnu::target("pclmul,sse4.1")]] std::uint32_t by_folding(std::uint32_t state, const std::byte* p, std::size_t n) {
  const __m128i by512 = _mm_set_epi64x(power(512 - 32), power(512 + 32));
  const __m128i by128 = _mm_set_epi64x(power(128 - 32), power(128 + 32));
  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(p + 16), c = load(p + 32), d = load(p + 48);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    a = fold(a, by512, load(p));
    b = fold(b, by512, load(p + 16));
    c = fold(c, by512, load(p + 32));
    d = fold(d, by512, load(p + 48));
  }
  a = fold(fold(fold(a, by128, b), by128, c), by128, d);
  for (; n >= 16; p += 16, n -= 16) a = fold(a, by128, load(p));
  std::byte rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), a);
  return by_table(by_table(0, rest, sizeof rest), p, n);
}

bool can_fold() {
  static const bool can = best_isa() != Isa::Baseline && __builtin_cpu_supports("pclmul");
  return can;
}

#endif

}  // namespace

std::uint32_t crc32(std::uint32_t crc, const std::byte* bytes, std::size_t count) {
#if defined(__x86_64__)
  if (count >= 64 && can_fold()) return ~by_folding(~crc, bytes, count);
#endif
  return ~by_table(~crc, bytes, count);
}

}  // namespace rushlight
