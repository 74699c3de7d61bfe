// Random numbers whose count of draws depends on the numbers drawn: Poisson, binomial, gamma; and draws from weights.
// The rules of random.h hold; here PyTorch's kernels have no fused form.
#pragma once

#include <cstdint>

#include "kernels/mersenne_twister.h"
#include "tensor/dtype.h"

namespace rushlight {

/// One Poisson number: below rate 10 the count of uniform numbers whose product stays above exp(-rate); from 10 on the
/// transformed rejection PTRS of Hörmann (1993), "The transformed rejection method for generating Poisson random
/// variables".
std::int64_t sample_poisson(MersenneTwister& generator, double rate);

/// One binomial number of `count` trials of probability p; NaN if either is, infinite
/// if `count` is (for such counts, PyTorch never returns).
/// By symmetry p <= 1/2; then the count of geometric numbers that fit into `count` if count * p < 10, else Hörmann's
/// BTRS (1993), "The generation of binomial random variates". All in Real.
template <class Real>
Real sample_binomial(MersenneTwister& generator, Real count, Real p);

/// One gamma number of shape alpha and scale 1 by Marsaglia and Tsang (2000), "A simple method for generating gamma
/// variables"; a shape below 1 is raised by 1 and the number multiplied by a uniform one to the power 1 / alpha. 0 for
/// alpha 0.
template <class Real>
double sample_gamma(MersenneTwister& generator, Real alpha);

/// torch.poisson: out[i] from rate[i] >= 0. T: float, double, Half, BFloat16.
template <class T>
void fill_poisson(MersenneTwister& generator, T* out, const T* rate, std::int64_t n);

/// torch.binomial: out[i] from count[i] and p[i]. T: float, double.
template <class T>
void fill_binomial(MersenneTwister& generator, T* out, const T* count, const T* p, std::int64_t n);

/// torch._standard_gamma: out[i] from alpha[i], at least the smallest normal number of T. T: float, double.
template <class T>
void fill_gamma(MersenneTwister& generator, T* out, const T* alpha, std::int64_t n);

/// torch._sample_dirichlet of `rows` rows of `n` shapes each: gamma numbers in double, divided by the sum of their row,
/// kept within the smallest normal number of T and the largest below 1. The sum has PyTorch's order for n < 256; longer
/// rows are added in another, so there the last bits of doubles may differ (the generator's state does not). T: float,
/// double.
template <class T>
void fill_dirichlet(MersenneTwister& generator, T* out, const T* alpha, std::int64_t rows, std::int64_t n);

/// torch.multinomial(weights, samples, replacement=True) of `rows` contiguous rows for samples > 1: each sample is the
/// place of a standard_uniform among the running sums of the row's weights, divided by their total. Throws RuntimeError
/// with PyTorch's phrases for weights that are negative, not finite, or sum to 0; `out` is then partly written. T:
/// float, double, Half, BFloat16.
template <class T>
void sample_with_replacement(MersenneTwister& generator, std::int64_t* out, const T* weights, std::int64_t rows,
                             std::int64_t n, std::int64_t samples);

/// torch.multinomial(weights, samples), and with replacement for one sample: the `samples` largest of weight / e in
/// descending order, where the e are exponential numbers of T, drawn for all rows first. The caller has checked the
/// weights (PyTorch does so by whole-tensor reductions) and samples <= n. T: float, double, Half, BFloat16.
template <class T>
void sample_without_replacement(MersenneTwister& generator, std::int64_t* out, const T* weights, std::int64_t rows,
                                std::int64_t n, std::int64_t samples);

}  // namespace rushlight
