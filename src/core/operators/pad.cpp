#include "operators/pad.h"

#include <memory>

#include "kernels/pad.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "tensor/format.h"

namespace rushlight {
namespace {

/// A number as a tensor of the type takes it.
Scalar number_of(const Scalar& value, DType dtype) {
  check_fits(value, dtype);
  return category(dtype) == 1 ? Scalar(value.to_int()) : value;
}

/// Amounts that no dimension can have, and whose sums might not fit.
void check_amounts(const Dims& pad) {
  constexpr std::int64_t most = std::int64_t(1) << 31;
  for (auto amount : pad) check(amount <= most && amount >= -most, "padding is too large: ", to_string(pad));
}

}  // namespace

TensorRef constant_pad(const Tensor& t, const Dims& pad, const Scalar& value) {
  int sides = pad.size();
  check(sides % 2 == 0, "Length of pad must be even but instead it equals ", sides);
  check(sides <= 2 * t.ndim,
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", sides,
        "while the input has ", int(t.ndim), "dimensions.");
  check_amounts(pad);
  Dims sizes(t.sizes()), window(t.sizes());
  std::int64_t from = t.offset, to = 0;
  bool grows = false;
  for (int k = 0; k < sides / 2; ++k) grows = grows || pad[2 * k] > 0 || pad[2 * k + 1] > 0;
  Dims lead(t.ndim);  // where the window stands in the result
  for (int k = 0; k < sides / 2; ++k) {
    int d = t.ndim - 1 - k;
    std::int64_t before = pad[2 * k], behind = pad[2 * k + 1];
    sizes[d] += before + behind;
    window[d] -= std::max<std::int64_t>(-before, 0) + std::max<std::int64_t>(-behind, 0);
    check(window[d] >= 0, "narrow(): length must be non-negative.");
    check(sizes[d] >= 0, "The input size ", t.size(d), ", plus negative padding ", before, " and ", behind,
          " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    from += std::max<std::int64_t>(-before, 0) * t.stride(d);
    lead[d] = std::max<std::int64_t>(before, 0);
  }
  Scalar number = number_of(value, t.dtype);
  MemoryFormat format = suggested_format(t);
  TensorRef source = make_tensor(Ref<Storage>(t.storage), t.dtype, window, t.strides(), from), out;
  if (!grows) {
    out = copy_of(*source);
  } else {
    out = empty_in(sizes, t.dtype, format);
    fill_numbers(*out, number);
    for (int d = 0; d < t.ndim; ++d) to += lead[d] * out->stride(d);
    if (source->numel)
      copy_numbers(*make_tensor(Ref<Storage>(out->storage), t.dtype, window, out->strides(), to), *source);
  }
  if (!is_differentiable(t.dtype)) return out;
  Dims back(pad);
  for (auto& p : back) p = -p;
  return record("ConstantPadNdBackward0", out, {&t}, {},
                [back](Vjp& v) { v.set(0, constant_pad(*v.grad(), back, 0)); });
}

// ---- by numbers of the tensor itself

namespace {

enum class Mode { Reflect, Replicate, Circular };

/// The place that place i of a padded dimension of n shows.
std::int64_t shown(Mode mode, std::int64_t i, std::int64_t n, std::int64_t first, std::int64_t kept) {
  if (mode == Mode::Replicate) return std::clamp<std::int64_t>(i, 0, n - 1);
  if (mode == Mode::Reflect) return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  return first + ((i - first) % kept + kept) % kept;  // what negative padding cuts off is no part of the circle
}

using Map = std::shared_ptr<const PadMap>;

struct Padding {
  Mode mode;
  int dims;          ///< how many are padded
  const char* name;  ///< of the node
  const char* backward;
};

Map make_map(const Padding& p, IntSpan sizes, const Dims& pad) {
  auto map = std::make_shared<PadMap>();
  int n = int(sizes.size());
  for (int k = 0; k < 3; ++k) {
    auto& table = map->source[2 - k];
    if (k >= p.dims) {
      table = {0};
      continue;
    }
    std::int64_t size = sizes[std::size_t(n - 1 - k)], before = pad[2 * k], behind = pad[2 * k + 1];
    map->size[2 - k] = size;
    std::int64_t first = std::max<std::int64_t>(-before, 0), kept = size - first - std::max<std::int64_t>(-behind, 0);
    for (std::int64_t i = -before; i < size + behind; ++i) table.push_back(shown(p.mode, i, size, first, kept));
  }
  for (int d = 0; d < n - p.dims; ++d) map->planes *= sizes[std::size_t(d)];
  return map;
}

Dims padded_sizes(const PadMap& map, IntSpan sizes, int dims) {
  Dims out(sizes);
  for (int k = 0; k < dims; ++k) out[out.size() - 1 - k] = std::int64_t(map.source[2 - k].size());
  return out;
}

/// The gradient of a padded tensor, added up at the places that it showed.
TensorRef pad_vjp(const Tensor& g, const Padding& p, const Dims& sizes, const Map& map);

TensorRef pad_with(const Tensor& t, const Padding& p, const Map& map) {
  TensorRef x = packed(t);
  Dims sizes = padded_sizes(*map, t.sizes(), p.dims);
  TensorRef out = empty(sizes, t.dtype);
  if (out->numel) pad_forward(*map, t.item_size(), x->read(), out->write());
  if (MemoryFormat format = suggested_format(t); format != MemoryFormat::Contiguous && p.mode != Mode::Circular) {
    TensorRef ordered = empty_in(sizes, t.dtype, format);
    copy_numbers(*ordered, *out);
    out = ordered;
  }
  if (!is_differentiable(t.dtype)) return out;
  return record(p.name, out, {&t}, {},
                [p, map, from = Dims(t.sizes())](Vjp& v) { v.set(0, pad_vjp(*v.grad(), p, from, map)); });
}

TensorRef pad_vjp(const Tensor& g, const Padding& p, const Dims& sizes, const Map& map) {
  TensorRef x = packed(g), out = zeros(sizes, g.dtype);
  if (g.numel) pad_backward(*map, g.dtype, x->read(), out->write());
  return record(p.backward, out, {&g}, {}, [p, map](Vjp& v) { v.set(0, pad_with(*v.grad(), p, map)); });
}

/// Refuses what does not fit, in the order of PyTorch's checks.
void check_padding(const Padding& p, const Tensor& t, const Dims& pad) {
  if (t.dtype == DType::Bool) fail(ErrorKind::NotImplemented, "\"pad\" in this mode not implemented for 'Bool'");
  check_amounts(pad);
  int n = t.ndim, dims = p.dims;
  if (p.mode == Mode::Reflect)
    check(pad.size() == 2 * dims, "padding size is expected to be ", 2 * dims, ", but got: ", pad.size());
  else
    check(pad.size() == 2 * dims, "padding size is expected to be ", 2 * dims);
  bool fits = n == dims + 1 || n == dims + 2;
  for (int d = fits ? n - dims - 1 : n; d < n; ++d) fits = fits && t.size(d) != 0;
  check(fits, "Expected ", dims + 1, "D or ", dims + 2,
        "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
        to_string(t.sizes()));
  if (p.mode == Mode::Reflect)
    for (int k = 0; k < dims; ++k) {
      std::int64_t size = t.size(n - 1 - k);
      check(pad[2 * k] < size && pad[2 * k + 1] < size, "Argument #", 4 + 2 * k,
            ": Padding size should be less than the corresponding input dimension, but got: padding (", pad[2 * k],
            ", ", pad[2 * k + 1], ") at dimension ", n - 1 - k, " of input ", to_string(t.sizes()));
    }
  bool any = false, negative = false;
  std::int64_t out[3] = {};
  for (int k = 0; k < dims; ++k) {
    out[k] = t.size(n - 1 - k) + pad[2 * k] + pad[2 * k + 1];
    any = any || out[k] >= 1;
    negative = negative || out[k] < 0;
  }
  if (dims == 1) check(any, "input (W: ", t.size(n - 1), ") is too small. Calculated output W: ", out[0]);
  if (dims == 2)
    check(any, "input (H: ", t.size(n - 2), ", W: ", t.size(n - 1), ") is too small. Calculated output H: ", out[1],
          " W: ", out[0]);
  if (dims == 3)
    check(any, "input (D: ", t.size(n - 3), " H: ", t.size(n - 2), ", W: ", t.size(n - 1),
          ") is too small. Calculated output D: ", out[2], " H: ", out[1], " W: ", out[0]);
  check(!negative, "Trying to create tensor with negative dimension: the padding ", pad, " cuts more than input ",
        to_string(t.sizes()), " has");
}

constexpr Padding reflections[] = {{Mode::Reflect, 1, "ReflectionPad1DBackward0", "ReflectionPad1DBackwardBackward0"},
                                   {Mode::Reflect, 2, "ReflectionPad2DBackward0", "ReflectionPad2DBackwardBackward0"},
                                   {Mode::Reflect, 3, "ReflectionPad3DBackward0", "ReflectionPad3DBackwardBackward0"}};
constexpr Padding replications[] = {
    {Mode::Replicate, 1, "ReplicationPad1DBackward0", "ReplicationPad1DBackwardBackward0"},
    {Mode::Replicate, 2, "ReplicationPad2DBackward0", "ReplicationPad2DBackwardBackward0"},
    {Mode::Replicate, 3, "ReplicationPad3DBackward0", "ReplicationPad3DBackwardBackward0"}};

template <const Padding* all, int dims>
TensorRef pad_op(const Tensor& t, const Dims& padding) {
  const Padding& p = all[dims - 1];
  check_padding(p, t, padding);
  return pad_with(t, p, make_map(p, t.sizes(), padding));
}

TensorRef pad_circular(const Tensor& t, const Dims& pad) {
  check_amounts(pad);
  int n = t.ndim, dims = pad.size() / 2;
  check(pad.size() % 2 == 0 && dims >= 1 && dims <= 3 && dims + 1 <= n,
        "Invalid padding size, expected 2, 4 or 6 lengths for fewer dimensions than the input's ", n, " but got ",
        pad.size());
  for (int k = 0; k < dims; ++k) {
    std::int64_t size = t.size(n - 1 - k), before = pad[2 * k], behind = pad[2 * k + 1];
    check(before <= size && behind <= size, "Padding value causes wrapping around more than once.");
    check(size + before + behind >= 0, "Negative padding value is resulting in an empty dimension");
    check(std::max(before, behind) <= size + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(behind, 0),
          "Padding value causes wrapping around more than once.");
  }
  Padding p{Mode::Circular, dims, "PadCircularBackward0", "PadCircularBackwardBackward0"};
  return pad_with(t, p, make_map(p, t.sizes(), pad));
}

TensorRef pad_by(const Tensor& t, const Dims& pad, const std::string& mode, std::optional<Scalar> value) {
  int sides = pad.size();
  check(sides % 2 == 0, "Padding length must be divisible by 2");
  check(sides <= 2 * t.ndim,
        "Padding length should be less than or equal to two times the input dimension but got padding length ", sides,
        " and input of dimension ", int(t.ndim));
  if (mode == "constant") return constant_pad(t, pad, value.value_or(Scalar(0)));
  bool known = mode == "reflect" || mode == "replicate" || mode == "circular";
  if (!known) fail(ErrorKind::NotImplemented, "Unrecognised padding mode ", mode);
  check(!value || value->is(0), "Padding mode \"", mode, "\" doesn't take in value argument");
  int dims = sides / 2;
  if (dims < 1 || dims > 3 || (t.ndim != dims + 1 && t.ndim != dims + 2))
    fail(ErrorKind::NotImplemented, "Padding size ", sides, " is not supported for ", int(t.ndim),
         "D input tensor.\nSupported combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 "
         "(pads last dimension)\n"
         "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 (pads "
         "last 3 dimensions)");
  if (mode == "circular") return pad_circular(t, pad);
  const Padding& p = (mode == "reflect" ? reflections : replications)[dims - 1];
  check_padding(p, t, pad);
  return pad_with(t, p, make_map(p, t.sizes(), pad));
}

TensorRef constant_pad_op(const Tensor& t, const Dims& pad, const Scalar& value) { return constant_pad(t, pad, value); }

const Define paddings[] = {
    {"constant_pad_nd(Tensor self, int[] pad, Scalar value=0)", &constant_pad_op, Function,
     "A number before and behind the last dimensions."},
    {"pad(Tensor self, int[] pad, str mode=\"constant\", Scalar? value=None)", &pad_by, NnFunction,
     "Padding by a constant, by reflection, by the edge, or around a circle."},
    {"_pad_circular(Tensor self, int[] pad)", &pad_circular, NnFunction,
     "The last dimensions continued at the other side."},
    {"reflection_pad1d(Tensor self, int[] padding)", &pad_op<reflections, 1>, NnFunction | Out,
     "The last dimension mirrored at its ends, which are not repeated."},
    {"reflection_pad2d(Tensor self, int[] padding)", &pad_op<reflections, 2>, NnFunction | Out,
     "The last two dimensions mirrored at their ends."},
    {"reflection_pad3d(Tensor self, int[] padding)", &pad_op<reflections, 3>, NnFunction | Out,
     "The last three dimensions mirrored at their ends."},
    {"replication_pad1d(Tensor self, int[] padding)", &pad_op<replications, 1>, NnFunction | Out,
     "The ends of the last dimension repeated."},
    {"replication_pad2d(Tensor self, int[] padding)", &pad_op<replications, 2>, NnFunction | Out,
     "The ends of the last two dimensions repeated."},
    {"replication_pad3d(Tensor self, int[] padding)", &pad_op<replications, 3>, NnFunction | Out,
     "The ends of the last three dimensions repeated."},
};

}  // namespace

}  // namespace rushlight
