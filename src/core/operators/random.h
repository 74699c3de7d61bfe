// Random numbers: the generator as an object, and the entry points that other families draw through.
//
// The numbers are PyTorch's for the same seed; docs/randomness.md has the facts. Draws happen while the interpreter
// lock is held, so a generator needs no lock of its own.
#pragma once

#include "kernels/mersenne_twister.h"
#include "operators/registry.h"
#include "tensor/tensor.h"

namespace rushlight {

/// A torch.Generator; like a tensor it is its own Python object.
struct Generator : Object {
  void* weakrefs;  ///< Python's weak references to it
  MersenneTwister twister;
};

/// embedding: the generator of torch.manual_seed, made with the module.
extern Generator* default_generator;

/// The generator that a call named, or the default one. The parser has checked its type.
inline MersenneTwister& generator_of(GeneratorArg g) {
  return (g.object ? static_cast<Generator*>(g.object) : default_generator)->twister;
}

/// Zero with probability p, else x / (1 - p), where `train`; recorded (dropout.cpp).
TensorRef dropout(const Tensor& x, double p, bool train);

// Filling without history, in the order of memory; parameters are checked before anything is drawn.

void draw_uniform(Tensor& t, double from, double to, MersenneTwister& generator);
void draw_normal(Tensor& t, double mean, double std, MersenneTwister& generator);
/// 1 with probability p, else 0.
void draw_bernoulli(Tensor& t, double p, MersenneTwister& generator);
/// The same with probabilities that broadcast to t.
void draw_bernoulli(Tensor& t, const Tensor& p, MersenneTwister& generator);
/// Whole numbers of [from, to).
void draw_integers(Tensor& t, std::int64_t from, std::int64_t to, MersenneTwister& generator);

}  // namespace rushlight
