// Elements by their number in row-major order.
#include "kernels/index.h"
#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// The numbers as packed int64 from 0 on; negative ones count from the end.
TensorRef numbers(const char* name, const Tensor& index, std::int64_t numel) {
  check(index.dtype == DType::Int64, name, "(): Expected a long tensor for index, but got ",
        info(index.dtype).scalar_name);
  TensorRef at = copy_of(*packed(index));
  auto* p = at->write_as<std::int64_t>();
  for (std::int64_t k = 0; k < at->numel; ++k) {
    check_index(p[k] >= -numel && p[k] < numel, "out of range: tried to access index ", p[k], " on a tensor of ", numel,
                " elements.");
    p[k] += p[k] < 0 ? numel : 0;
  }
  return at;
}

TensorRef put_to(Target target, const Tensor& index, const Tensor& source, bool accumulate);

TensorRef take(const Tensor& t, const Tensor& index) {
  check_index(t.numel > 0 || index.numel == 0, "take(): tried to take from an empty tensor");
  TensorRef at = numbers("take", index, t.numel), x = packed(t);
  TensorRef out = empty(index.sizes(), t.dtype);
  if (out->numel)
    select_blocks(x->read(), out->write(), 1, t.numel, at->read_as<std::int64_t>(), at->numel, t.item_size());
  if (!is_differentiable(t.dtype)) return out;
  return record("TakeBackward0", out, {&t}, {save_other(at)}, [sizes = Dims(t.sizes())](Vjp& v) {
    TensorRef at = v.saved(0);
    v.set(0, put_to(*zeros(sizes, v.grad()->dtype), *at, *v.grad(), true));
  });
}

/// Writes, or adds, source[k] at element at[k] of row-major `to`.
void put_numbers(Tensor& to, const Tensor& at, const Tensor& source, bool accumulate) {
  TensorRef plain = packed(source);
  DimensionPair p;
  p.first = reinterpret_cast<char*>(to.write());
  p.second = const_cast<char*>(reinterpret_cast<const char*>(plain->read()));
  p.first_step = p.second_step = to.item_size();
  p.index = at.read_as<std::int64_t>();
  p.count = at.numel;
  if (accumulate)
    add_places(p, to.dtype, 1);
  else
    copy_places(p, to.item_size());
}

TensorRef put_to(Target target, const Tensor& index, const Tensor& source, bool accumulate) {
  const Tensor& self = target.self;
  check(self.dtype == source.dtype,
        "put_(): self and source expected to have the same dtype, but got self.dtype = ", info(self.dtype).scalar_name,
        " and source.dtype = ", info(source.dtype).scalar_name);
  check_index(index.numel == source.numel,
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel, ", index.numel() = ", index.numel);
  TensorRef at = numbers("put_", index, self.numel);
  return write_part(
      "PutBackward0", target, {&self, &source}, {save_other(at)},
      [&](Tensor& to) {
        if (to.is_contiguous()) return put_numbers(to, *at, source, accumulate);
        TensorRef plain = packed(to);
        put_numbers(*plain, *at, source, accumulate);
        copy_numbers(to, *plain);
      },
      [accumulate, sizes = Dims(source.sizes())](Vjp& v) {
        TensorRef at = v.saved(0);
        const Tensor& g = *v.grad();
        if (v.needs(0)) v.set(0, accumulate ? v.grad() : put_to(g, *at, *zeros(at->sizes(), g.dtype), false));
        if (v.needs(1)) v.set(1, reshape(*take(g, *at), sizes));
      });
}

TensorRef put(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) {
  return put_to(t, index, source, accumulate);
}
TensorRef put_(Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) {
  return put_to({t, "put_"}, index, source, accumulate);
}

const Define elements[] = {
    {"take(Tensor self, Tensor index)", &take, Both | Out,
     "Elements by their number in row-major order, in the index' shape."},
    {"put(Tensor self, Tensor index, Tensor source, bool accumulate=False)", &put, Both,
     "Writes, or adds, source at elements by their number in row-major order."},
    {"put_(Tensor self, Tensor index, Tensor source, bool accumulate=False)", &put_, Method, "put in place."},
};

}  // namespace

}  // namespace rushlight
