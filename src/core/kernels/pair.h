// Two instructions of a program in one: a sum or product that only the next sum or product reads stays in a register
// instead of being written to a block and read again. The arithmetic is the same, step by step, and so are the bits.
#pragma once

#include "kernels/program.h"

namespace rushlight {

/// The program with such instructions joined, and without copies; for computations in float or double.
Program paired(const Program& program);

}  // namespace rushlight
