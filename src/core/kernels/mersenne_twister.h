// The generator of random bits: MT19937, with PyTorch's use of it and PyTorch's saved form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rushlight {

/// PyTorch's CPU generator: the 32-bit Mersenne Twister of Matsumoto and Nishimura (1998), and up to two normal numbers
/// that the last Box-Muller pair left over. Not thread-safe: a generator that several threads use needs a lock around
/// each fill.
class MersenneTwister {
 public:
  /// What torch.initial_seed() says in a fresh process.
  static constexpr std::uint64_t default_seed = 67280421310721;
  /// Bytes of torch.get_rng_state().
  static constexpr std::size_t state_size = 5056;

  enum class StateError { None, WrongSize, Invalid };

  explicit MersenneTwister(std::uint64_t seed = default_seed) { this->seed(seed); }

  /// Starts the stream of `seed` (its low 32 bits choose the stream, all 64 are remembered) and drops cached normals.
  void seed(std::uint64_t seed);
  std::uint64_t initial_seed() const { return initial_seed_; }

  /// The next 32 bits.
  std::uint32_t random() {
    if (--left_ == 0) refill();
    return temper(words_[next_++]);
  }

  /// The next 64 bits; the first draw is the upper half.
  std::uint64_t random64() {
    std::uint64_t high = random();
    return high << 32 | random();
  }

  /// out[0..n) = n calls of random(), a block at a time.
  void random_block(std::uint32_t* out, std::int64_t n);
  /// out[0..n) = n calls of random64(), a block at a time.
  void random64_block(std::uint64_t* out, std::int64_t n);

  /// The second number of a Box-Muller pair, standard normal, kept for the next call that wants one.
  std::optional<double> next_double_normal;
  std::optional<float> next_float_normal;

  /// Writes the state_size bytes of torch.get_rng_state(). The layout (little-endian, natural alignment):
  ///   0 u64 seed | 8 i32 left | 12 i32 seeded | 16 u64 next | 24 u64[624] words | 5016 f64 normal_x | 5024 f64
  ///   normal_y | 5032 f64 normal_rho | 5040 i32 normal_is_valid | 5044 padding | 5048 f32 next_float_normal | 5052 u8
  ///   is_valid | padding
  /// A cached double normal stands in normal_y; normal_x and normal_rho are 0.
  void get_state(std::uint8_t* bytes) const;

  /// Takes a state that get_state() or PyTorch wrote. On an error nothing changes: WrongSize unless `size` is
  /// state_size; Invalid where PyTorch finds the state invalid, and where its use would read past the words (which
  /// PyTorch lets happen).
  StateError set_state(const std::uint8_t* bytes, std::size_t size);

 private:
  static constexpr int word_count = 624;

  static std::uint32_t temper(std::uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  /// Makes the next 624 words; left_ and next_ then describe a full block.
  void refill();

  std::uint64_t initial_seed_ = 0;
  std::int32_t left_ = 1;   ///< draws until the next refill, counting the one which refills: 1 when none is left
  std::uint32_t next_ = 0;  ///< index of the next word; 0 after seeding, though left_ then says that all words are used
  std::array<std::uint32_t, word_count> words_;
};

}  // namespace rushlight
