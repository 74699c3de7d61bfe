#include "operators/copy.h"

#include <cmath>
#include <cstring>

#include "autograd/tangent.h"
#include "kernels/loop.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "kernels/walk.h"
#include "operators/layout.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "tensor/format.h"

namespace rushlight {

/// embedding: Python's UserWarning.
void warn(const std::string& message);

namespace {

/// A two-dimensional transposition in tiles, for inner runs that jump in the source.
template <class T>
void copy_tiled(char* to, char* from, std::int64_t n0, std::int64_t n1, std::int64_t to1, std::int64_t from0,
                std::int64_t from1) {
  constexpr std::int64_t tile = 32;
  parallel_for(n1, std::max<std::int64_t>(tile, (1 << 16) / std::max<std::int64_t>(n0, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t j0 = begin; j0 < end; j0 += tile)
                   for (std::int64_t i0 = 0; i0 < n0; i0 += tile)
                     for (std::int64_t j = j0; j < std::min(j0 + tile, end); ++j) {
                       T* out = reinterpret_cast<T*>(to + j * to1);
                       const char* in = from + j * from1;
                       for (std::int64_t i = i0; i < std::min(i0 + tile, n0); ++i)
                         out[i] = *reinterpret_cast<const T*>(in + i * from0);
                     }
               });
}

}  // namespace

void copy_numbers(Tensor& to, const Tensor& from) {
  if (to.numel == 0) return;
  char* base[2] = {const_cast<char*>(reinterpret_cast<const char*>(from.read())), reinterpret_cast<char*>(to.write())};
  if (to.dtype == from.dtype && to.is_contiguous() && from.is_contiguous() && to.numel == from.numel &&
      to.numel * to.item_size() <= (1 << 16)) {
    std::memmove(base[1], base[0], std::size_t(to.numel * to.item_size()));
    return;
  }
  Dims source = broadcast_strides(from, to.sizes());
  const std::int64_t* strides[2] = {source.data(), to.strides().data()};
  std::int64_t item[2] = {from.item_size(), to.item_size()};
  Nest nest(to.sizes(), strides, item, 2);
  if (to.dtype == from.dtype && nest.ndim == 2 && nest.steps[0][1] == item[1] && nest.steps[0][0] > 4 * item[0] &&
      nest.steps[1][0] == item[0]) {
    visit_width(item[1], [&]<class T>() {
      copy_tiled<T>(base[1], base[0], nest.sizes[0], nest.sizes[1], nest.steps[1][1], nest.steps[0][0],
                    nest.steps[1][0]);
    });
    return;
  }
  if (to.dtype == from.dtype && nest.ndim > 1 && nest.sizes[0] < short_run && Walk(nest, 1).is_even() &&
      Walk(nest, 1).step() == item[1]) {
    Walk walk(nest, 0);
    parallel_for(nest.numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
      visit_width(item[1],
                  [&]<class T>() { walk.gather(base[0], begin, end - begin, reinterpret_cast<T*>(base[1]) + begin); });
    });
    return;
  }
  LoopFunction loop = cast_loop(from.dtype, to.dtype);
  parallel_for(nest.numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
    nest.run(base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
      if (item[0] == item[1] && to.dtype == from.dtype && steps[0] == item[0] && steps[1] == item[1]) {
        std::memmove(p[1], p[0], std::size_t(n * item[0]));
        return;
      }
      char* args[2] = {p[0], p[1]};
      std::intptr_t count = n, s[2] = {steps[0], steps[1]};
      loop(args, &count, s, nullptr);
    });
  });
}

void add_numbers(Tensor& to, const Tensor& from) {
  static PointwiseOp& op = pointwise_op("add");
  GradScope off(false);
  Operand in[2] = {Operand(to), Operand(from)};
  Kernel* kernel = to.dtype == from.dtype && to.is_contiguous() && from.is_contiguous() && !modes.dual
                       ? fast_kernel(op, to.dtype)
                       : nullptr;
  if (kernel && same_sizes(to, from)) {
    Arrangement layout = layout_of(to);
    bool laid = layout && layout == layout_of(from);
    char* address[3] = {
        reinterpret_cast<char*>(laid ? to.storage->write_laid() : to.write()),
        const_cast<char*>(reinterpret_cast<const char*>(laid ? from.storage->read_laid() : from.read())), nullptr};
    address[2] = address[0];
    std::int64_t item = to.item_size(), steps[3] = {item, item, item};
    run_kernel_flat(*kernel, to.numel, address, steps, laid);
    to.bump_version();
    return;
  }
  pointwise_inplace(op, to, in, "add_");
}

TensorRef copy_of(const Tensor& t) {
  if (Arrangement layout = layout_of(t)) {
    TensorRef out = empty_laid(t.sizes(), t.dtype, layout);
    std::memcpy(out->storage->write_laid(), t.storage->read_laid(), t.storage->size);
    return out;
  }
  TensorRef out = empty_like_in(t, t.dtype, MemoryFormat::Preserve);
  copy_numbers(*out, t);
  return out;
}

TensorRef packed(const Tensor& t) {
  if (t.is_contiguous()) return TensorRef(const_cast<Tensor*>(&t));
  TensorRef out = empty(t.sizes(), t.dtype);
  copy_numbers(*out, t);
  return out;
}

Scalar item(const Tensor& t) {
  check(t.numel == 1, "a Tensor with ", t.numel, " elements cannot be converted to Scalar");
  return Scalar::load(t.dtype, t.read());
}

TensorRef clone(const Tensor& t) {
  return record("CloneBackward0", copy_of(t), {&t}, {}, by_rows([](Vjp& v) { v.set(0, v.grad()); }));
}

TensorRef contiguous(const Tensor& t) {
  if (t.is_contiguous()) return TensorRef(const_cast<Tensor*>(&t));
  return record("CloneBackward0", packed(t), {&t}, {}, by_rows([](Vjp& v) { v.set(0, v.grad()); }));
}

namespace {
/// The numbers of `t` in `out`, of another type or order.
TensorRef converted(const Tensor& t, TensorRef out) {
  copy_numbers(*out, t);
  if (!is_differentiable(out->dtype)) return out;
  return record("ToCopyBackward0", std::move(out), {&t}, {},
                by_rows([from = t.dtype](Vjp& v) { v.set(0, cast(*v.grad(), from)); }));
}
}  // namespace

TensorRef convert(const Tensor& t, DType dtype, bool copy) {
  if (t.dtype == dtype && !copy) return TensorRef(const_cast<Tensor*>(&t));
  return converted(t, empty_like_in(t, dtype, MemoryFormat::Preserve));
}

TensorRef cast(const Tensor& t, DType dtype) { return convert(t, dtype, false); }

void copy_into(Tensor& self, const Tensor& from) {
  bool records = needs_record(self, from);
  check_inplace(self, wants_gradients(self, from));
  if (&from != &self) refuse_overlapping_write(self);
  Dims common = broadcast_sizes(self.sizes(), from.sizes());
  check(equal(common, self.sizes()), "output with shape ", to_string(self.sizes()),
        " doesn't match the broadcast shape ", to_string(common));
  const Tensor* source = &from;
  TensorRef copy;
  Overlap overlap = &from == &self ? Overlap::None : memory_overlap(self, from);
  if (overlap == Overlap::Partial && is_dense(self) && is_dense(from))
    fail_shared_memory();  // others: PyTorch is silent
  if (overlap != Overlap::None) {
    copy = copy_of(from);
    source = copy.get();
  }
  Ref<Node> node;
  if (records && is_differentiable(self.dtype)) {
    const Tensor* inputs[] = {&self, &from};
    node = make_lambda_node("CopyBackwards", inputs, {}, 1, [sizes = Dims(from.sizes()), dtype = from.dtype](Vjp& v) {
      if (v.needs(0)) v.set(0, zeros_like(*v.grad()));
      if (v.needs(1)) v.set(1, cast(*sum_to_size(*v.grad(), sizes), dtype));
    });
  }
  if (&from != &self) copy_numbers(self, *source);
  finish_inplace(self, std::move(node), "copy_");
}

TensorRef add(const Tensor& a, const Tensor& b) {
  static PointwiseOp& op = pointwise_op("add");
  return pointwise(op, {Operand(a), Operand(b)});
}

TensorRef old_numbers(const Tensor& t) {
  TensorRef old = copy_of(t);
  if (Node* fn = t.grad_fn()) set_history(*old, fn, t.output_nr);
  int seen = modes.dual;
  for (int level = 0; level < seen; ++level)
    if (Tensor* tangent = find_tangent(t, level)) {
      TangentsBelow below(level);
      set_tangent(*old, level, modes.grad ? clone(*tangent) : TensorRef(tangent));  // the old one will be changed, too
    }
  return old;
}

void overwrite(Tensor& self, const Tensor& old, const Tensor& result, bool records, const char* operation) {
  Ref<Node> node;
  bool carried = false;
  if (Node* fn = result.grad_fn(); fn && records) {
    if (is_view(self) || result.dtype != self.dtype || result.output_nr != 0 || &result == &old) {
      const Tensor* inputs[] = {&self, &result};
      node = make_lambda_node("CopyBackwards", inputs, {}, 1, [dtype = result.dtype](Vjp& v) {
        if (v.needs(0)) v.set(0, zeros_like(*v.grad()));
        if (v.needs(1)) v.set(1, cast(*v.grad(), dtype));
      });
      carried = true;
    } else {
      node = Ref<Node>(fn);
    }
  }
  if (&result != &self) copy_numbers(self, result);
  if (modes.dual && !carried) overwrite_tangents(self, result);
  finish_inplace(self, std::move(node), operation);
}

void refuse_tangents(const std::string& operation, const Tensor& out, const Operand* in, int n) {
  bool any = carries_tangent(out);
  for (int i = 0; i < n; ++i) any = any || (in[i].tensor && carries_tangent(*in[i].tensor));
  if (any)
    fail(ErrorKind::NotImplemented, "Trying to use forward AD with ", operation,
         "_out that does not support it because it is an out= function");
}

void check_out(const Tensor& out, DType result, const Operand* in, int n, const char* operation) {
  bool graph = out.requires_grad();
  for (int i = 0; i < n && !graph; ++i) graph = in[i].tensor && in[i].tensor->requires_grad();
  check(!(modes.grad && graph), operation,
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
  check(can_cast(result, out.dtype), "result type ", info(result).scalar_name,
        " can't be cast to the desired output type ", info(out.dtype).scalar_name);
}

void resize_out(Tensor& out, IntSpan sizes) {
  if (equal(out.sizes(), sizes)) return;
  if (out.numel != 0)
    warn(concat("An output with one or more elements was resized since it had shape ", to_string(out.sizes()),
                ", which does not match the required output shape ", to_string(sizes),
                ". This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless "
                "they have zero elements. You can explicitly "
                "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."));
  set_sizes(out, sizes);
}

void set_sizes(Tensor& t, IntSpan sizes) {
  if (equal(t.sizes(), sizes)) return;
  std::int64_t bytes = (t.offset + count_elements(sizes)) * t.item_size();
  if (std::int64_t(t.storage->size) < bytes) resize_storage(t.storage, std::size_t(bytes));
  set_geometry(&t, sizes, contiguous_strides(sizes));
}

void refuse_overlapping_write(const Tensor& t) {
  check(!has_internal_overlap(t),
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the "
        "operation.");
}

void fail_shared_memory() {
  fail(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
      "location. Please clone() the tensor before performing the operation.");
}

// ---- the operators

namespace {

/// Absent and Preserve leave the order of a tensor's memory as it is.
bool keeps_order(MemoryFormat format) { return format == MemoryFormat::Absent || format == MemoryFormat::Preserve; }

TensorRef clone_op(const Tensor& t, MemoryFormat format) {
  if (keeps_order(format)) return clone(t);
  TensorRef out = empty_in(t.sizes(), t.dtype, format);
  copy_numbers(*out, t);
  return record("CloneBackward0", out, {&t}, {}, by_rows([](Vjp& v) { v.set(0, v.grad()); }));
}
TensorRef contiguous_op(const Tensor& t, MemoryFormat format) {
  if (is_contiguous_in(t, format)) return TensorRef(const_cast<Tensor*>(&t));
  check(format != MemoryFormat::Preserve, "preserve memory format is unsupported by the contiguous operator");
  return clone_op(t, format == MemoryFormat::Absent ? MemoryFormat::Contiguous : format);
}
/// A conversion or a copy that somebody asked for tells of what is lost, once.
void warn_of_imaginary(DType from, DType to) {
  static bool warned = false;
  if (!is_complex(from) || is_complex(to) || to == DType::Bool || warned) return;
  warned = true;
  warn("Casting complex values to real discards the imaginary part");
}

TensorRef convert_to(const Tensor& t, DType dtype, bool copy, MemoryFormat format) {
  warn_of_imaginary(t.dtype, dtype);
  if (keeps_order(format) || (!copy && suggested_format(t) == format && t.dtype == dtype))
    return convert(t, dtype, copy);
  return converted(t, empty_in(t.sizes(), dtype, format));
}
TensorRef copy_op(Tensor& self, const Tensor& from, bool) {
  warn_of_imaginary(from.dtype, self.dtype);
  copy_into(self, from);
  return TensorRef(&self);
}
TensorRef copy_number(Tensor& self, const Scalar& number, bool) {
  copy_into(self, *scalar_tensor(number, self.dtype));
  return TensorRef(&self);
}
TensorRef type_op(const Tensor& t, DType dtype, bool, bool copy, MemoryFormat format) {
  return convert_to(t, dtype, copy, format);
}
TensorRef to_device(const Tensor& t, Device, std::optional<DType> dtype, bool, bool copy, MemoryFormat format) {
  return convert_to(t, dtype.value_or(t.dtype), copy, format);
}
TensorRef to_like(const Tensor& t, const Tensor& other, bool, bool copy, MemoryFormat format) {
  return convert_to(t, other.dtype, copy, format);
}
template <DType d>
TensorRef to_type(const Tensor& t, MemoryFormat format) {
  return convert_to(t, d, false, format);
}
TensorRef type_as(const Tensor& t, const Tensor& other) { return cast(t, other.dtype); }

const Define copies[] = {
    {"clone(Tensor self, *, memory_format memory_format=None)", &clone_op, Both, "A copy that gradients flow through."},
    {"contiguous(Tensor self, *, memory_format memory_format=None)", &contiguous_op, Method,
     "The tensor in row-major order: itself where it is."},
    {"copy_(Tensor self, Tensor src, bool non_blocking=False)", &copy_op, Method,
     "Overwrites the numbers with those of src, broadcast and converted."},
    {"copy_(Tensor self, Scalar src, bool non_blocking=False)", &copy_number, Method},
    {"to(Tensor self, dtype dtype, bool non_blocking=False, bool copy=False, *, memory_format memory_format=None)",
     &type_op, Method, "The tensor in another type (devices: the CPU alone)."},
    {"to(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, *, memory_format memory_format=None)",
     &to_like, Method},
    {"to(Tensor self, device device=None, dtype? dtype=None, bool non_blocking=False, bool copy=False, *, "
     "memory_format memory_format=None)",
     &to_device, Method},
    {"type_as(Tensor self, Tensor other)", &type_as, Method, "The tensor in the type of another."},
    {"float(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Float32>, Method, "to(float32)"},
    {"double(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Float64>, Method, "to(float64)"},
    {"half(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Float16>, Method, "to(float16)"},
    {"bfloat16(Tensor self, *, memory_format memory_format=None)", &to_type<DType::BFloat16>, Method, "to(bfloat16)"},
    {"int(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Int32>, Method | NoGradient, "to(int32)"},
    {"long(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Int64>, Method | NoGradient,
     "to(int64)"},
    {"short(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Int16>, Method | NoGradient,
     "to(int16)"},
    {"char(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Int8>, Method | NoGradient, "to(int8)"},
    {"byte(Tensor self, *, memory_format memory_format=None)", &to_type<DType::UInt8>, Method | NoGradient,
     "to(uint8)"},
    {"cfloat(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Complex64>, Method, "to(complex64)"},
    {"cdouble(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Complex128>, Method,
     "to(complex128)"},
    {"bool(Tensor self, *, memory_format memory_format=None)", &to_type<DType::Bool>, Method | NoGradient, "to(bool)"},
};

}  // namespace

}  // namespace rushlight
