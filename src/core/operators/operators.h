// The native operators as C++ sees them. Each is differentiable where its meaning is, and records itself.
#pragma once

#include "operators/along.h"
#include "operators/arithmetic.h"
#include "operators/copy.h"
#include "operators/extremum.h"
#include "operators/factory.h"
#include "operators/index.h"
#include "operators/join.h"
#include "operators/linear.h"
#include "operators/matmul.h"
#include "operators/norm.h"
#include "operators/pointwise.h"
#include "operators/random.h"
#include "operators/reduce.h"
#include "operators/softmax.h"
#include "operators/scatter.h"
#include "operators/view.h"
