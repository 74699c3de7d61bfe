// Pointwise operators: one mechanism for forward, derivative, in-place and out= forms.
//
// The Python room declares each (src/rushlight/operators/pointwise.py): a primitive names a loop, a composite is an
// expression of other pointwise operators; its derivative with respect to each input is an expression over the inputs
// x0.., the result y and the gradient g. An expression is flattened into a program and run block by block; when the
// derivative is itself to be recorded, the same expression is interpreted over tensors.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/record.h"
#include "kernels/program.h"

namespace rushlight {

struct PointwiseOp;
struct TangentPrograms;  // pointwise_tangent.cpp
struct TangentProgramsDeleter {
  void operator()(TangentPrograms* p) const noexcept;
};

/// Slots as in a Program; each call names an operator.
struct Expression {
  struct Call {
    PointwiseOp* op;
    std::uint8_t n_in;
    std::uint16_t in[4];
  };
  int n_inputs = 0;
  std::vector<Scalar> constants;
  std::vector<Call> code;
  std::uint16_t output = 0;
  unsigned uses = 0;  ///< which inputs the expression reads, a bit each
};

/// The derivative with respect to each operand, as an expression over x0..x(n-1), y and g that is linear in g.
struct Derivatives {
  bool derived = false;
  bool has[4] = {};
  Expression of[4];
  std::unique_ptr<Program> programs[4];
  /// That of input i reads input j (j = n_in: the result).
  bool reads(int i, int j) const { return has[i] && ((of[i].uses >> j) & 1); }
};

enum class TypeRule : std::uint8_t {
  Promote,  ///< the promoted type of the operands
  Float,    ///< the same, integers becoming the default floating type
};

struct PointwiseOp {
  std::string name;
  int n_in = 1;
  TypeRule rule = TypeRule::Promote;
  unsigned refused = 0;        ///< categories of promoted types (dtype.h) that it does not take, a bit each
  std::string refusals[4];     ///< what is said of each; empty: that it is not implemented
  std::string bool_operand;    ///< what is said of an operand of bool among others; empty: it is taken
  unsigned promoted = ~0u;     ///< inputs that take part in promotion; others keep their type (masks)
  const Loop* loop = nullptr;  ///< of a primitive
  Expression body;             ///< of a composite
  bool differentiable = false;
  /// embedding: fills in the derivatives of real or of complex numbers.
  void (*derive)(PointwiseOp&, bool complex) = nullptr;
  void* python = nullptr;           ///< what `derive` works from; owned by the embedding
  Derivatives of_real, of_complex;  ///< made when they are first needed (derivatives)
  NodeKind kind;

  std::string params[4];                 ///< names of the operands in Python
  char takes[4] = {'t', 'e', 'e', 'e'};  ///< t: a tensor, n: a number, e: either
  unsigned numbers = 0;                  ///< operands that are numbers always: they do not take part in promotion
  bool has_default[4] = {};
  Scalar defaults[4];
  PointwiseOp* scaled = nullptr;   ///< of add and sub: the form with alpha
  PointwiseOp* floored = nullptr;  ///< of div: the forms with rounding_mode
  PointwiseOp* truncated = nullptr;
  bool is_power = false;  ///< pow: the exponent chooses the operator (arithmetic.h)

  Kernel* fast[dtype_count] = {};         ///< all inputs of one type, natural output (see fast_kernel)
  Kernel* fast_vjp[4][dtype_count] = {};  ///< all of one type, the gradient and what is written too
  std::unordered_map<std::uint64_t, std::unique_ptr<Kernel>> kernels;
  std::unordered_map<std::uint64_t, std::unique_ptr<Kernel>> vjp_kernels[4];
  std::unique_ptr<Program> program;  ///< flattened forward
  std::unique_ptr<TangentPrograms, TangentProgramsDeleter> tangent_programs;

  /// The derivatives of a computation in the type. Those of complex numbers follow PyTorch's convention: the cotangent
  /// of a holomorphic function is multiplied by the conjugate of its derivative (src/rushlight/operators/trace.py).
  Derivatives& derivatives(DType compute) {
    bool complex = is_complex(compute);
    Derivatives& d = complex ? of_complex : of_real;
    if (!d.derived) derive(*this, complex);
    return d;
  }
};

/// A tensor, or a Python number.
struct Operand {
  const Tensor* tensor = nullptr;
  Scalar number;
  Operand() = default;
  Operand(const Tensor& t) : tensor(&t) {}
  Operand(const TensorRef& t) : tensor(t.get()) {}
  Operand(const Scalar& s) : number(s) {}
  Operand(double v) : number(v) {}
};

PointwiseOp& define_pointwise(std::string name, int n_in);
/// The operator of that name; raises where there is none.
PointwiseOp& pointwise_op(std::string_view name);

/// The promoted type of operands by PyTorch's rules (dimensioned tensors, then 0-d ones, then numbers).
DType result_type(const Operand* operands, int n, unsigned mask = ~0u);
bool can_cast(DType from, DType to);

/// Applies the operator; into `out` where given (resized if need be, as out= does).
TensorRef pointwise(PointwiseOp& op, const Operand* in, Tensor* out = nullptr);
/// Applies it and writes the result over `self` (usually in[0]), with checks, version and history.
void pointwise_inplace(PointwiseOp& op, Tensor& self, const Operand* in, const char* operation);

/// The names of what a pointwise node may keep (self, other, result); of other nodes none.
std::vector<std::string> operand_names(const Node* node);
/// Which saved tensor of a pointwise node Python calls `_saved_<name>` (self, other, result), or -1.
int saved_slot(const Node* node, std::string_view name);

/// The kernel for inputs that are all of type `d`, or null where the operator's rule computes in another type.
Kernel* fast_kernel(PointwiseOp& op, DType d);

inline TensorRef pointwise(PointwiseOp& op, std::initializer_list<Operand> in) { return pointwise(op, in.begin()); }

}  // namespace rushlight
