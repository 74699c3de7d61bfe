// Filling memory with random numbers: PyTorch's CPU distributions, bit for bit (docs/randomness.md gives the facts).
//
// Every function draws from the generator exactly what PyTorch draws, so that the state after a call is equal too.
//
// Order. PyTorch fills a tensor in the order of its memory, not of its indices: dimensions sorted by stride, largest
// outermost. A caller with a dense tensor in any order of dimensions passes its memory as it lies; one with gaps fills
// a contiguous buffer of the dimensions so sorted, and copies. Functions that take a tensor of parameters and make a
// new one (poisson, binomial, gamma, torch.bernoulli) go by the index order of a contiguous result; bernoulli_ with a
// tensor of probabilities goes by the memory order of the tensor filled.
//
// Bits. PyTorch's x86 build has these kernels twice: one for AVX2 and FMA, where the compiler contracted `x * y + z`
// into one rounding, and one without. uses_fused_kernels() (multiply_add.h) says which this machine's PyTorch would
// take. The logarithm, exponential and trigonometric functions are the C library's in both, so results are equal where
// both programs run with the same C library (glibc's last bit may differ between versions). The float normal is the
// exception, see fill_normal. This file's sources must be compiled with -ffp-contract=off: where a product and a sum
// are fused, it is written.
//
// Not matched: builds of PyTorch for other architectures (their contraction is their compiler's choice, not verified;
// the unfused forms are used there) and builds that draw bernoulli and exponential numbers from Intel's VSL (the wheels
// for x86 of PyTorch 2.13 do not: they contain no VSL).
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/mersenne_twister.h"
#include "tensor/dtype.h"

namespace rushlight {

/// out[i] uniform in [from, to). A float (and half, computed in float) takes the low 24 bits of a 32-bit draw, a double
/// the low 53 of a 64-bit draw, times 2^-24 (2^-53), times (to - from), plus from; a result that rounds to `to` becomes
/// `from`. The caller has checked from <= to, both within T, and to - from finite. T: float, double, Half, BFloat16.
template <class T>
void fill_uniform(MersenneTwister& generator, T* out, std::int64_t n, double from, double to);

/// Tensor.random_(): integers of T from 0 to its largest; for floating T, from 0 to 2^digits, all of which T
/// represents. One 32-bit draw each, or one 64-bit draw for int64 and double, modulo the count. T: every real type and
/// bool.
template <class T>
void fill_random(MersenneTwister& generator, T* out, std::int64_t n);

/// out[i] = from + draw % range: Tensor.random_(from, to) with range = to - from, torch.randint. The draw has 32 bits
/// if range < 2^28, else 64. `range` 0 means 2^64: all 64 bits are used (random_(-2^63, None) of int64).
template <class T>
void fill_random_range(MersenneTwister& generator, T* out, std::int64_t n, std::int64_t from, std::uint64_t range);

/// The bounds that Tensor.random_(from, to) really uses for a floating T: where T cannot represent from or to - 1 and
/// rounds it out of the interval, PyTorch moves that bound inwards by two units in the last place. Identity for other
/// T.
struct RandomBounds {
  std::int64_t from, to;
};
template <class T>
RandomBounds representable_bounds(std::int64_t from, std::int64_t to);

/// out[0..n) = a permutation of 0..n-1 (torch.randperm). For n < (2^32 - 1) / 20, Fisher-Yates from the front: out[i]
/// is exchanged with out[i + draw % (n - i)], 32-bit draws, for i < n - 1. Above, its inside-out form: for i < n, i
/// goes to place draw % (i + 1) and what stood there to place i, 64-bit draws. T must represent n - 1.
template <class T>
void fill_permutation(MersenneTwister& generator, T* out, std::int64_t n);

/// Tensor.normal_ of a contiguous tensor. n < 16: fill_normal_serial. Otherwise Box-Muller over blocks of 16 uniform
/// numbers u of T (halves: of float): out[j], out[j + 8] = mean + std * r cos(a), mean + std * r sin(a) with r =
/// sqrt(-2 log(1 - u[j])), a = 2 pi u[j + 8]. All n uniforms are drawn first (halves: a block at a time); if n is no
/// multiple of 16, the last 16 numbers are made again from 16 fresh draws. For float and halves the fused kernel's log,
/// cos and sin are the single-precision polynomials of the Cephes library in a fixed order of fused operations (matched
/// everywhere that kernel is used, whatever the C library); otherwise they are the C library's. T: float, double, Half,
/// BFloat16.
template <class T>
void fill_normal(MersenneTwister& generator, T* out, std::int64_t n, double mean, double std);

/// Tensor.normal_ of a non-contiguous tensor, or of fewer than 16 numbers: computed in double from pairs of 64-bit
/// uniforms, the first giving the angle, the second the radius by log1p; the sine half waits in
/// generator.next_double_normal.
template <class T>
void fill_normal_serial(MersenneTwister& generator, T* out, std::int64_t n, double mean, double std);

/// One standard normal number in double, the sampler of fill_normal_serial, of log_normal and of gamma.
double standard_normal(MersenneTwister& generator);

/// One uniform double of [0, 1): the low 53 bits of a 64-bit draw times 2^-53.
inline double standard_uniform(MersenneTwister& generator) {
  return double(generator.random64() & ((std::uint64_t(1) << 53) - 1)) * 0x1p-53;
}

/// Tensor.bernoulli_(p) with a number p in [0, 1], and dropout's mask (bernoulli_(1 - p)): 1 where standard_uniform <
/// p. T: every real type and bool.
template <class T>
void fill_bernoulli(MersenneTwister& generator, T* out, std::int64_t n, double p);

/// Tensor.bernoulli_(p), torch.bernoulli(p) with probabilities p[i]: 1 where a uniform number is below p[i]; the
/// uniform is a standard_uniform for double p, and a 24-bit one in float for float and half p. The caller has checked 0
/// <= p[i] <= 1.
template <class T, class P>
void fill_bernoulli(MersenneTwister& generator, T* out, const P* p, std::int64_t n);

/// Tensor.exponential_(rate): -1 / rate * log1p(-u), u a standard_uniform, computed in double.
template <class T>
void fill_exponential(MersenneTwister& generator, T* out, std::int64_t n, double rate);

/// Tensor.geometric_(p): ceil(log(u) / log1p(-p)) in double, u a standard_uniform. T: every real type (PyTorch has no
/// bool).
template <class T>
void fill_geometric(MersenneTwister& generator, T* out, std::int64_t n, double p);

/// Tensor.log_normal_(mean, std): exp of a number of fill_normal_serial, in double.
template <class T>
void fill_log_normal(MersenneTwister& generator, T* out, std::int64_t n, double mean, double std);

/// Tensor.cauchy_(median, sigma): median + sigma tan(pi (u - 1/2)) in double, u a standard_uniform.
template <class T>
void fill_cauchy(MersenneTwister& generator, T* out, std::int64_t n, double median, double sigma);

/// Randomized leaky relu: where x[i] <= 0 a slope uniform in [lower, upper) (bounds in float, or in double for double;
/// the draw a standard_uniform), elsewhere 1; out[i] = x[i] * slope, with the slope not yet rounded to half types, and
/// noise[i] = slope. T: float, double, BFloat16, Half.
template <class T>
void fill_leaky(MersenneTwister& generator, T* out, T* noise, const T* x, std::int64_t n, double lower, double upper);

}  // namespace rushlight
