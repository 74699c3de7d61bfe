#include "operators/scatter.h"

#include <limits>

#include "operators/along.h"
#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/places.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// The index as int64; refuses other types.
TensorRef as_index(const char* name, const Tensor& index) {
  check(index.dtype == DType::Int64 || index.dtype == DType::Int32 || index.numel == 0, name,
        "(): Expected dtype int32/int64 for index");
  GradScope off(false);
  return cast(index, DType::Int64);
}

/// Refuses places outside of the dimension.
void check_places(const Tensor& index, int dim, std::int64_t size) {
  if (auto bad = misplaced(index, 0, size))
    fail("index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
}

struct Shape {  // a scalar counts as a vector of one element
  Dims sizes, strides;
  explicit Shape(const Tensor& t) : sizes(t.sizes()), strides(t.strides()) {
    if (t.ndim == 0) {
      sizes.push_back(1);
      strides.push_back(1);
    }
  }
};

/// The numbers of `values`, or one number that meets every place.
struct Values {
  char* address;
  Dims strides;
  explicit Values(const Tensor& t) : address(rushlight::address(t)), strides(Shape(t).strides) {}
  Values(std::byte* number, int ndim) : address(reinterpret_cast<char*>(number)), strides(ndim, 0) {}
};

/// The table has been asked for by write() where it is written.
IndexedLines lines_of(const Tensor& table, const Tensor& index, const Values& values, int dim) {
  Shape i(index);
  IndexedLines w = lines_along(table, Shape(table).strides, dim, i.sizes, i.strides, values.strides);
  w.base[1] = address(index);
  w.base[2] = values.address;
  return w;
}

int rank_of(const Tensor& t) { return std::max<int>(t.ndim, 1); }

/// Refuses an index that reaches beyond the table's other dimensions.
void check_gather(const Tensor& t, const Tensor& index, int dim) {
  if (index.numel == 0) return;
  check(rank_of(index) == rank_of(t), "Index tensor must have the same number of dimensions as input tensor");
  Shape a(t), i(index);
  for (int d = 0; d < i.sizes.size(); ++d)
    check(d == dim || i.sizes[d] <= a.sizes[d], "Size does not match at dimension ", d, " expected index ",
          to_string(index.sizes()), " to be no larger than self ", to_string(t.sizes()), " apart from dimension ", dim);
}

/// The same for scattering, where the source must cover the index.
void check_scatter(const Tensor& t, const Tensor& index, int dim, const Tensor* source) {
  check(!source || t.dtype == source->dtype, "scatter(): Expected self.dtype to be equal to src.dtype");
  if (index.numel == 0) return;
  check(rank_of(index) == rank_of(t), "Index tensor must have the same number of dimensions as self tensor");
  check(!source || rank_of(*source) == rank_of(index),
        "Index tensor must have the same number of dimensions as src tensor");
  Shape a(t), i(index);
  bool fits = true;
  for (int d = 0; d < i.sizes.size(); ++d) fits = fits && (d == dim || i.sizes[d] <= a.sizes[d]);
  if (!source) {
    check(fits, "Expected index ", to_string(index.sizes()), " to be no larger than self ", to_string(t.sizes()),
          " apart from dimension ", dim);
    return;
  }
  Shape s(*source);
  for (int d = 0; d < i.sizes.size(); ++d) fits = fits && i.sizes[d] <= s.sizes[d];
  check(fits, "Expected index ", to_string(index.sizes()), " to be no larger than self ", to_string(t.sizes()),
        " apart from dimension ", dim, " and to be no larger size than src ", to_string(source->sizes()));
}

/// The part of a source that an index of these sizes covers; a view, so that the rest gets a gradient of zeros.
TensorRef corner(const Tensor& t, IntSpan sizes) {
  TensorRef out(const_cast<Tensor*>(&t));
  if (t.ndim == int(sizes.size()))
    for (int d = 0; d < t.ndim; ++d)
      if (t.size(d) != sizes[std::size_t(d)]) out = slice(*out, d, 0, sizes[std::size_t(d)], 1);
  return out;
}

/// table[index] = table[index] op values; refuses places outside of the dimension where they have not been before.
void scatter_into(Tensor& table, int dim, const Tensor& index, const Tensor& values, Scatter op) {
  table.write();
  if (index.numel && !scatter_lines(lines_of(table, index, Values(values), dim), table.dtype, op))
    check_places(index, dim, size_along(table, dim));
}
void scatter_into(Tensor& table, int dim, const Tensor& index, const Scalar& value) {
  table.write();
  alignas(16) std::byte number[16];
  value.store(table.dtype, number);
  if (index.numel &&
      !scatter_lines(lines_of(table, index, Values(number, rank_of(index)), dim), table.dtype, Scatter::Assign))
    check_places(index, dim, size_along(table, dim));
}

/// The kernel looks at the places while it writes; what cannot be taken back has them looked at before.
void check_places_of(const Target& target, int dim, const Tensor& index) {
  if (target.inplace) check_places(index, dim, size_along(target.self, dim));
}

}  // namespace

TensorRef gather(const Tensor& t, std::int64_t dim_, const Tensor& index_) {
  int dim = wrap_dim(dim_, t.ndim);
  TensorRef index = as_index("gather", index_);
  check_gather(t, *index, dim);
  TensorRef out = empty(index->sizes(), t.dtype);
  out->write();
  if (out->numel && !gather_lines(lines_of(t, *index, Values(*out), dim), t.item_size()))
    check_places(*index, dim, size_along(t, dim));
  if (!is_differentiable(t.dtype)) return out;
  return record("GatherBackward0", out, {&t}, {save_other(index_)}, by_rows([sizes = Dims(t.sizes()), dim](Vjp& v) {
                  v.set(0, scatter_along(v, *v.grad(), sizes, dim, *v.saved(0)));
                }));
}

namespace {

TensorRef scatter_source(Target target, std::int64_t dim_, const Tensor& index_, const Tensor& whole) {
  const Tensor& self = target.self;
  int dim = wrap_dim(dim_, self.ndim);
  TensorRef index = as_index("scatter", index_);
  check_scatter(self, *index, dim, &whole);
  check_places_of(target, dim, *index);
  TensorRef source = corner(whole, index->sizes());
  return write_part(
      "ScatterBackward0", target, {&self, source.get()}, {save_other(index_)},
      [&](Tensor& to) { scatter_into(to, dim, *index, *source, Scatter::Assign); },
      [dim](Vjp& v) {
        TensorRef index = v.saved(0);
        if (v.needs(0)) v.set(0, scatter(*v.grad(), dim, *index, Scalar(0)));
        if (v.needs(1)) v.set(1, gather(*v.grad(), dim, *index));
      });
}

TensorRef scatter_number(Target target, std::int64_t dim_, const Tensor& index_, const Scalar& value) {
  const Tensor& self = target.self;
  int dim = wrap_dim(dim_, self.ndim);
  TensorRef index = as_index("scatter", index_);
  check_scatter(self, *index, dim, nullptr);
  check_fits(value, self.dtype);
  check_places_of(target, dim, *index);
  return write_part(
      "ScatterBackward1", target, {&self}, {save_other(index_)},
      [&](Tensor& to) { scatter_into(to, dim, *index, value); },
      [dim](Vjp& v) {
        TensorRef index = v.saved(0);
        v.set(0, scatter(*v.grad(), dim, *index, Scalar(0)));
      });
}

TensorRef scatter_sum(Target target, std::int64_t dim_, const Tensor& index_, const Tensor& whole) {
  const Tensor& self = target.self;
  int dim = wrap_dim(dim_, self.ndim);
  TensorRef index = as_index("scatter", index_);
  check_scatter(self, *index, dim, &whole);
  check_places_of(target, dim, *index);
  TensorRef source = corner(whole, index->sizes());
  return write_part(
      "ScatterAddBackward0", target, {&self, source.get()}, {save_other(index_)},
      [&](Tensor& to) { scatter_into(to, dim, *index, *source, Scatter::Add); },
      [dim](Vjp& v) {
        if (v.needs(0)) v.set(0, v.grad());
        if (v.needs(1)) {
          TensorRef index = v.saved(0);
          v.set(1, gather(*v.grad(), dim, *index));
        }
      });
}

}  // namespace

TensorRef scatter(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return scatter_source(t, dim, index, source);
}
TensorRef scatter(const Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter_number(t, dim, index, value);
}
TensorRef scatter_add(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return scatter_sum(t, dim, index, source);
}

// ---- reductions

namespace {

enum class Reduction { Sum, Product, Mean, Largest, Smallest };

Reduction reduction_of(const std::string& name) {
  if (name == "sum") return Reduction::Sum;
  if (name == "prod") return Reduction::Product;
  if (name == "mean") return Reduction::Mean;
  if (name == "amax") return Reduction::Largest;
  if (name == "amin") return Reduction::Smallest;
  fail("reduce argument must be either sum, prod, mean, amax or amin, got ", name);
}

/// The number that a reduction begins with where the old one does not count.
Scalar identity_of(Reduction r, DType dtype) {
  if (r == Reduction::Product) return 1;
  if (r != Reduction::Largest && r != Reduction::Smallest) return 0;
  bool low = r == Reduction::Largest;
  if (category(dtype) >= 2)
    return low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return visit_dtype(dtype, [&]<class T>() -> Scalar {
    if constexpr (std::is_integral_v<T>)
      return Scalar(std::int64_t(low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max()));
    else
      return Scalar(0);
  });
}

TensorRef named(const char* name, std::initializer_list<Operand> in) { return pointwise(pointwise_op(name), in); }

/// How many numbers meet at each place of a tensor of `sizes`, at least one.
TensorRef counts(IntSpan sizes, DType dtype, int dim, const Tensor& index, bool include_self) {
  TensorRef count = full(sizes, include_self ? 1 : 0, dtype);
  count = scatter_add(*count, dim, index, *ones(index.sizes(), dtype));
  return include_self ? count : named("maximum", {Operand(count), Operand(Scalar(1))});
}

/// Writes the reduction over `to`.
void reduce_into(Tensor& to, int dim, const Tensor& index, const Tensor& source, Reduction r, bool include_self) {
  if (index.numel == 0) return;
  if (!include_self) scatter_into(to, dim, index, identity_of(r, to.dtype));
  Scatter op = r == Reduction::Product    ? Scatter::Multiply
               : r == Reduction::Largest  ? Scatter::Larger
               : r == Reduction::Smallest ? Scatter::Smaller
                                          : Scatter::Add;
  scatter_into(to, dim, index, source, op);
  if (r != Reduction::Mean) return;
  GradScope off(false);
  TensorRef count = counts(to.sizes(), to.dtype, dim, index, include_self);
  TensorRef mean = named(category(to.dtype) < 2 ? "floor_divide" : "div", {Operand(to), Operand(count)});
  copy_numbers(to, *mean);
}

/// What the derivative of a reduction works from.
struct Meeting {
  TensorRef g, self, source, result, index;
  int dim;
  bool include_self;
  TensorRef at_index(const TensorRef& t) const { return gather(*t, dim, *index); }
};
struct Gradients {
  TensorRef self, source;
};

/// The derivative of a product, right where factors are zero: each gets the product of the others.
Gradients product_vjp(const Meeting& r) {
  TensorRef self_or_one = masked_fill(*r.self, *named("eq", {Operand(r.self), Operand(Scalar(0))}), 1);
  TensorRef others = scatter_reduce(*self_or_one, r.dim, *r.index, *r.source, "prod", r.include_self);
  TensorRef to_self = named("div", {Operand(named("mul", {Operand(r.g), Operand(others)})), Operand(self_or_one)});
  TensorRef is_zero = named("eq", {Operand(r.source), Operand(Scalar(0))}), lone_zero;
  {
    GradScope off(false);
    TensorRef met =
        scatter_add(*zeros(r.self->sizes(), r.source->dtype), r.dim, *r.index, *cast(*is_zero, r.source->dtype));
    lone_zero =
        named("logical_and", {Operand(is_zero), Operand(named("eq", {Operand(r.at_index(met)), Operand(Scalar(1))}))});
  }
  TensorRef without_zero =
      scatter_reduce(*r.self, r.dim, *r.index, *masked_fill(*r.source, *lone_zero, 1), "prod", r.include_self);
  TensorRef at_lone = r.at_index(named("mul", {Operand(r.g), Operand(without_zero)}));
  TensorRef elsewhere = r.at_index(named("mul", {Operand(r.g), Operand(r.result)}));
  elsewhere = named("div", {Operand(elsewhere), Operand(masked_fill(*r.source, *is_zero, 1))});
  return {to_self, where(*lone_zero, Operand(at_lone), Operand(elsewhere))};
}

/// The derivative of a greatest or least number: shared equally by all that attain it.
Gradients extreme_vjp(const Meeting& r) {
  TensorRef self_is, source_is, share;
  {
    GradScope off(false);
    self_is = cast(*named("eq", {Operand(r.self), Operand(r.result)}), r.self->dtype);
    if (!r.include_self) self_is = scatter(*self_is, r.dim, *r.index, Scalar(0));
    source_is = cast(*named("eq", {Operand(r.source), Operand(r.at_index(r.result))}), r.self->dtype);
    share = scatter_add(*self_is, r.dim, *r.index, *source_is);
  }
  TensorRef each = named("div", {Operand(r.g), Operand(share)});
  return {named("mul", {Operand(each), Operand(self_is)}),
          named("mul", {Operand(r.at_index(each)), Operand(source_is)})};
}

Gradients reduction_vjp(Reduction kind, const Meeting& r) {
  switch (kind) {
    case Reduction::Sum:
      return {r.g, r.at_index(r.g)};
    case Reduction::Product:
      return product_vjp(r);
    case Reduction::Mean: {
      TensorRef count;
      {
        GradScope off(false);
        count = counts(r.self->sizes(), r.self->dtype, r.dim, *r.index, r.include_self);
      }
      TensorRef each = named("div", {Operand(r.g), Operand(count)});
      return {each, r.at_index(each)};
    }
    default:
      return extreme_vjp(r);
  }
}

TensorRef reduce_to(const char* name, Target target, std::int64_t dim_, const Tensor& index_, const Tensor& whole,
                    const std::string& how, bool include_self) {
  Tensor& self = target.self;
  Reduction kind = reduction_of(how);
  int dim = wrap_dim(dim_, self.ndim);
  TensorRef index = as_index("scatter", index_);
  check_scatter(self, *index, dim, &whole);
  check_places_of(target, dim, *index);
  TensorRef source = corner(whole, index->sizes());
  auto derivative = [kind, dim, include_self](Vjp& v) {
    Meeting r{v.grad(), v.saved(1), v.saved(2), v.saved(3), v.saved(0), dim, include_self};
    Gradients g = reduction_vjp(kind, r);
    if (v.needs(0)) v.set(0, include_self ? g.self : scatter(*g.self, dim, *r.index, Scalar(0)));
    if (v.needs(1)) v.set(1, g.source);
  };
  const Tensor* inputs[] = {&self, source.get()};
  bool records = is_differentiable(self.dtype) && any_needs_record(inputs);
  if (target.inplace) {
    check_inplace(self, any_wants_gradients(inputs));
    refuse_overlapping_write(self);
    refuse_shared_memory(self, *source);
    if (!records) {
      reduce_into(self, dim, *index, *source, kind, include_self);
      finish_inplace(self, nullptr, target.inplace);
      return TensorRef(&self);
    }
  }
  TensorRef result = copy_of(self);
  reduce_into(*result, dim, *index, *source, kind, include_self);
  if (!target.inplace)
    return records ? record(name, result, {&self, source.get()},
                            {save_other(index), save_in(self, 0), save_in(*source, 1), save_out(result)}, derivative)
                   : result;
  TensorRef old = copy_of(self);  // the derivative reads the old numbers
  Save saves[] = {save_other(index), save_in(*old, 0), save_in(*source, 1), save_other(result)};
  auto node = make_lambda_node(name, inputs, saves, 1, derivative);
  copy_numbers(self, *result);
  finish_inplace(self, std::move(node), target.inplace);
  return TensorRef(&self);
}

}  // namespace

TensorRef scatter_reduce(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source,
                         const std::string& reduce, bool include_self) {
  return reduce_to("ScatterReduceBackward0", t, dim, index, source, reduce, include_self);
}

// ---- the operators

namespace {

TensorRef gather_op(const Tensor& t, std::int64_t dim, const Tensor& index, bool sparse_grad) {
  if (sparse_grad)
    fail(ErrorKind::NotImplemented, "gather(): sparse_grad=True is not available: gradients are strided");
  return gather(t, dim, index);
}

TensorRef scatter_source_op(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter(t, dim, index, src);
}
TensorRef scatter_number_op(const Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter(t, dim, index, value);
}
TensorRef scatter_source_(Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_source({t, "scatter_"}, dim, index, src);
}
TensorRef scatter_number_(Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter_number({t, "scatter_"}, dim, index, value);
}
TensorRef scatter_add_(Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_sum({t, "scatter_add_"}, dim, index, src);
}

/// scatter(reduce="add" or "multiply"), the older form of scatter_reduce.
const char* older_reduction(const std::string& reduce) {
  check(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  return reduce == "add" ? "sum" : "prod";
}
TensorRef scatter_with(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& src,
                       const std::string& reduce) {
  return scatter_reduce(t, dim, index, src, older_reduction(reduce), true);
}
TensorRef scatter_with_number(const Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value,
                              const std::string& reduce) {
  check_fits(value, t.dtype);
  return scatter_reduce(t, dim, index, *full(index.sizes(), value, t.dtype), older_reduction(reduce), true);
}
TensorRef scatter_with_(Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& src,
                        const std::string& reduce) {
  return reduce_to("ScatterReduceBackward0", {t, "scatter_"}, dim, index, src, older_reduction(reduce), true);
}
TensorRef scatter_with_number_(Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value,
                               const std::string& reduce) {
  check_fits(value, t.dtype);
  return reduce_to("ScatterReduceBackward0", {t, "scatter_"}, dim, index, *full(index.sizes(), value, t.dtype),
                   older_reduction(reduce), true);
}
TensorRef scatter_reduce_(Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& src,
                          const std::string& reduce, bool include_self) {
  return reduce_to("ScatterReduceBackward0", {t, "scatter_reduce_"}, dim, index, src, reduce, include_self);
}

/// index_reduce: scatter_reduce with a vector of places.
TensorRef index_reduce_to(Target target, std::int64_t dim_, const Tensor& index, const Tensor& source,
                          const std::string& reduce, bool include_self) {
  check(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  if (is_complex(target.self.dtype))
    fail(ErrorKind::NotImplemented, "\"index_reduce\" not implemented for '", info(target.self.dtype).scalar_name, "'");
  int dim = wrap_dim(dim_, target.self.ndim);
  check_index(index.ndim <= 1, "index_reduce(): Index is supposed to be a vector, but got dim: ", int(index.ndim),
              " with type: ", info(index.dtype).scalar_name, " and size: ", to_string(index.sizes()));
  check(index.dtype == DType::Int64 || index.dtype == DType::Int32,
        "index_reduce(): Expected dtype int32/int64 for index but got: ", info(index.dtype).scalar_name);
  check(target.self.dtype == source.dtype, "index_reduce(): self (", info(target.self.dtype).scalar_name,
        ") and source (", info(source.dtype).scalar_name, ") must have the same scalar type");
  check(source.ndim == 0 || dim < source.ndim, "index_reduce(): Indexing dim ", dim,
        " is out of bounds of the source tensor with dim ", int(source.ndim));
  check(index.numel == (source.ndim ? source.size(dim) : 1), "index_reduce(): Number of indices (", index.numel,
        ") should be equal to source.size(dim): (", source.ndim ? source.size(dim) : 1, "), for dim: ", dim);
  Dims lone(source.ndim, 1);
  if (source.ndim) lone[dim] = index.numel;
  TensorRef places;
  {
    GradScope off(false);
    places = expand(*view(*packed(index), lone), source.sizes());
  }
  return reduce_to("IndexReduceBackward0", target, dim, *places, source, reduce, include_self);
}
TensorRef index_reduce(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source,
                       const std::string& reduce, bool include_self) {
  return index_reduce_to(t, dim, index, source, reduce, include_self);
}
TensorRef index_reduce_(Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source,
                        const std::string& reduce, bool include_self) {
  return index_reduce_to({t, "index_reduce_"}, dim, index, source, reduce, include_self);
}

TensorRef take_along_dim(const Tensor& t, const Tensor& index, std::optional<std::int64_t> dim_) {
  check(index.dtype == DType::Int64, "torch.take_along_dim(): dtype of indices should be Long but got ",
        info(index.dtype).scalar_name);
  if (!dim_) return gather(*reshape(t, Dims{-1}), 0, *reshape(index, Dims{-1}));
  check(t.ndim == index.ndim,
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ", int(t.ndim),
        " dimensions for input, and ", int(index.ndim), " dimensions for indices");
  int dim = wrap_dim(*dim_, t.ndim);
  Dims a(t.sizes()), b(index.sizes());
  if (t.ndim) a[dim] = b[dim] = 1;
  Dims common = broadcast_sizes(a, b);
  Dims t_sizes(common), index_sizes(common);
  if (t.ndim) {
    t_sizes[dim] = t.size(dim);
    index_sizes[dim] = index.size(dim);
  }
  TensorRef x = equal(t.sizes(), t_sizes) ? TensorRef(const_cast<Tensor*>(&t)) : expand(t, t_sizes);
  TensorRef at =
      equal(index.sizes(), index_sizes) ? TensorRef(const_cast<Tensor*>(&index)) : expand(index, index_sizes);
  check(size_along(t, dim) != 0 || at->numel == 0, "ZeroDivisionError");
  if (misplaced(*at, 0, size_along(t, dim)))  // places beyond the ends go round
    at = named("remainder", {Operand(at), Operand(Scalar(size_along(t, dim)))});
  return gather(*x, dim, *at);
}

const Define scatters[] = {
    {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)", &gather_op, Both | Out,
     "Elements at the places of a dimension that an index of full shape names."},
    {"scatter(Tensor self, int dim, Tensor index, Tensor src)", &scatter_source_op, Both | Out,
     "Writes src, or a number, to the places of a dimension that an index names."},
    {"scatter(Tensor self, int dim, Tensor index, Scalar value)", &scatter_number_op, Both | Out},
    {"scatter(Tensor self, int dim, Tensor index, Tensor src, *, str reduce)", &scatter_with, Both | Out},
    {"scatter(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)", &scatter_with_number, Both | Out},
    {"scatter_(Tensor self, int dim, Tensor index, Tensor src)", &scatter_source_, Method, "scatter in place."},
    {"scatter_(Tensor self, int dim, Tensor index, Scalar value)", &scatter_number_, Method},
    {"scatter_(Tensor self, int dim, Tensor index, Tensor src, *, str reduce)", &scatter_with_, Method},
    {"scatter_(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)", &scatter_with_number_, Method},
    {"scatter_add(Tensor self, int dim, Tensor index, Tensor src)", &scatter_add, Both | Out,
     "Adds src at the places of a dimension that an index names."},
    {"scatter_add_(Tensor self, int dim, Tensor index, Tensor src)", &scatter_add_, Method, "scatter_add in place."},
    {"scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)",
     &scatter_reduce, Both | Out, "The sum, prod, mean, amax or amin of what meets at each place."},
    {"scatter_reduce_(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)",
     &scatter_reduce_, Method, "scatter_reduce in place."},
    {"index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)",
     &index_reduce, Both | Out, "The prod, mean, amax or amin of what meets at the places that a vector names."},
    {"index_reduce_(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)",
     &index_reduce_, Method, "index_reduce in place."},
    {"take_along_dim(Tensor self, Tensor indices, int? dim=None)", &take_along_dim, Both | Out,
     "gather with broadcasting; without dim over all elements."},
};

}  // namespace

}  // namespace rushlight
