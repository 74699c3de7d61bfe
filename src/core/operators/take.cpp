// Elements by their number in row-major order.
#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/places.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

void check_long(const char* name, const Tensor& index) {
  check(index.dtype == DType::Int64, name, "(): Expected a long tensor for index, but got ",
        info(index.dtype).scalar_name);
}

/// Refuses numbers beyond the elements; negative ones count from the end.
void check_numbers(const Tensor& index, std::int64_t numel) {
  if (auto bad = misplaced(index, -numel, numel))
    fail(ErrorKind::Index, "out of range: tried to access index ", *bad, " on a tensor of ", numel, " elements.");
}

/// The elements of row-major `table` that packed `index` numbers, beside packed `values`.
IndexedLines elements_of(const Tensor& table, const Tensor& index, const Tensor& values) {
  Dims places{index.numel}, side_by_side{1};
  IndexedLines w = lines_along(table, side_by_side, 0, places, side_by_side, side_by_side);
  w.base[1] = address(index);
  w.base[2] = address(values);
  w.size = table.numel;
  w.wraps = true;
  return w;
}

TensorRef put_to(Target target, const Tensor& index, const Tensor& source, bool accumulate);

TensorRef take(const Tensor& t, const Tensor& index) {
  check_index(t.numel > 0 || index.numel == 0, "take(): tried to take from an empty tensor");
  check_long("take", index);
  TensorRef at = packed(index), x = packed(t), out = empty(index.sizes(), t.dtype);
  out->write();
  if (!gather_lines(elements_of(*x, *at, *out), t.item_size())) check_numbers(*at, t.numel);
  if (!is_differentiable(t.dtype)) return out;
  return record("TakeBackward0", out, {&t}, {save_other(index)}, [sizes = Dims(t.sizes())](Vjp& v) {
    TensorRef at = v.saved(0);
    v.set(0, put_to(*zeros(sizes, v.grad()->dtype), *at, *v.grad(), true));
  });
}

/// Writes, or adds, source[k] at element at[k] of row-major `to`.
void put_numbers(Tensor& to, const Tensor& at, const Tensor& source, bool accumulate) {
  TensorRef plain = packed(source);
  to.write();
  if (!scatter_lines(elements_of(to, at, *plain), to.dtype, accumulate ? Scatter::Add : Scatter::Assign))
    check_numbers(at, to.numel);
}

TensorRef put_to(Target target, const Tensor& index, const Tensor& source, bool accumulate) {
  const Tensor& self = target.self;
  check(self.dtype == source.dtype,
        "put_(): self and source expected to have the same dtype, but got self.dtype = ", info(self.dtype).scalar_name,
        " and source.dtype = ", info(source.dtype).scalar_name);
  check_index(index.numel == source.numel,
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel, ", index.numel() = ", index.numel);
  check_long("put_", index);
  TensorRef at = packed(index);
  if (target.inplace) check_numbers(*at, self.numel);
  return write_part(
      "PutBackward0", target, {&self, &source}, {save_other(index)},
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
