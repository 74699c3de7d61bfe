#include "kernels/mersenne_twister.h"

#include <algorithm>
#include <cstring>

namespace rushlight {

namespace {

constexpr std::size_t seed_at = 0, left_at = 8, seeded_at = 12, next_at = 16, words_at = 24, normal_y_at = 5024,
                      normal_is_valid_at = 5040, float_normal_at = 5048, float_normal_is_valid_at = 5052;

template <class T>
T load(const std::uint8_t* bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof(T));
  return value;
}

template <class T>
void store(std::uint8_t* bytes, std::size_t at, T value) {
  std::memcpy(bytes + at, &value, sizeof(T));
}

// The recurrence of the twister for one word: the upper bit of `a` with the lower bits of `b`, times the matrix A.
inline std::uint32_t twist(std::uint32_t a, std::uint32_t b) {
  std::uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
  return (y >> 1) ^ (-(b & 1u) & 0x9908b0dfu);
}

}  // namespace

void MersenneTwister::seed(std::uint64_t seed) {
  initial_seed_ = seed;
  words_[0] = std::uint32_t(seed);
  for (std::uint32_t i = 1; i < word_count; ++i) words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  left_ = 1;
  next_ = 0;
  next_double_normal.reset();
  next_float_normal.reset();
}

void MersenneTwister::refill() {
  constexpr int shift = 397;
  std::uint32_t* w = words_.data();
  // Three loops without a modulo, so that the compiler can make vectors of them.
  for (int i = 0; i < word_count - shift; ++i) w[i] = w[i + shift] ^ twist(w[i], w[i + 1]);
  for (int i = word_count - shift; i < word_count - 1; ++i) w[i] = w[i + shift - word_count] ^ twist(w[i], w[i + 1]);
  w[word_count - 1] = w[shift - 1] ^ twist(w[word_count - 1], w[0]);
  left_ = word_count;
  next_ = 0;
}

void MersenneTwister::random_block(std::uint32_t* out, std::int64_t n) {
  while (n > 0) {
    if (left_ == 1) {
      refill();
      left_ = word_count + 1;  // no draw has been made of this block yet
    }
    const auto count = std::int32_t(std::min<std::int64_t>(n, left_ - 1));
    const std::uint32_t* words = words_.data() + next_;
    for (std::int32_t i = 0; i < count; ++i) out[i] = temper(words[i]);
    left_ -= count;
    next_ += std::uint32_t(count);
    out += count;
    n -= count;
  }
}

void MersenneTwister::random64_block(std::uint64_t* out, std::int64_t n) {
  std::array<std::uint32_t, 2 * 256> halves;
  while (n > 0) {
    const std::int64_t count = std::min<std::int64_t>(n, std::int64_t(halves.size()) / 2);
    random_block(halves.data(), 2 * count);
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = std::uint64_t(halves[std::size_t(2 * i)]) << 32 | halves[std::size_t(2 * i + 1)];
    out += count;
    n -= count;
  }
}

void MersenneTwister::get_state(std::uint8_t* bytes) const {
  std::memset(bytes, 0, state_size);
  store<std::uint64_t>(bytes, seed_at, initial_seed_);
  store<std::int32_t>(bytes, left_at, left_);
  store<std::int32_t>(bytes, seeded_at, 1);
  store<std::uint64_t>(bytes, next_at, next_);
  for (std::size_t i = 0; i < word_count; ++i) store<std::uint64_t>(bytes, words_at + 8 * i, words_[i]);
  store<double>(bytes, normal_y_at, next_double_normal.value_or(0.0));
  store<std::int32_t>(bytes, normal_is_valid_at, next_double_normal.has_value());
  store<float>(bytes, float_normal_at, next_float_normal.value_or(0.0f));
  store<std::uint8_t>(bytes, float_normal_is_valid_at, next_float_normal.has_value());
}

MersenneTwister::StateError MersenneTwister::set_state(const std::uint8_t* bytes, std::size_t size) {
  if (size != state_size) return StateError::WrongSize;
  const auto left = load<std::int32_t>(bytes, left_at);
  const auto next = load<std::uint64_t>(bytes, next_at);
  if (load<std::int32_t>(bytes, seeded_at) == 0 || left < 1 || left > word_count) return StateError::Invalid;
  if (next > word_count || next + std::uint64_t(left) - 1 > word_count) return StateError::Invalid;

  initial_seed_ = load<std::uint64_t>(bytes, seed_at);
  left_ = left;
  next_ = std::uint32_t(next);
  for (std::size_t i = 0; i < word_count; ++i) words_[i] = std::uint32_t(load<std::uint64_t>(bytes, words_at + 8 * i));
  next_double_normal.reset();
  next_float_normal.reset();
  if (load<std::int32_t>(bytes, normal_is_valid_at) != 0) next_double_normal = load<double>(bytes, normal_y_at);
  if (load<std::uint8_t>(bytes, float_normal_is_valid_at) != 0) next_float_normal = load<float>(bytes, float_normal_at);
  return StateError::None;
}

}  // namespace rushlight
