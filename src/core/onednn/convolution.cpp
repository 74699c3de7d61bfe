// Convolutions by oneDNN's primitives, kept by shape.
#include <omp.h>

#include <cstring>
#include <dnnl.hpp>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/onednn.h"

namespace rushlight {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr std::size_t most_plans = 512;

dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

/// An array as its owner has it, as the primitive wants it, and the way between.
struct Array {
  memory outside, inside;
  dnnl::reorder move;  ///< empty where they are the same
};

/// A primitive, ready to run.
struct Plan {
  dnnl::primitive primitive;
  Array x, w, y;
  memory bias, scratch;
  std::size_t scratch_bytes = 0;
  ConvPass pass;
};

/// The sizes of a convolution in the library's terms: two dimensions of space, or three.
struct Shape {
  const ConvGeometry& c;
  int space;
  bool grouped;
  explicit Shape(const ConvGeometry& c)
      : c(c),
        space(c.in[0] == 1 && c.kernel[0] == 1 && c.out[0] == 1 && !c.padding[0] ? 2 : 3),
        grouped(c.groups > 1) {}

  memory::dims of_space(const std::int64_t (&v)[3]) const { return {v + 3 - space, v + 3}; }
  memory::dims data(std::int64_t channels, const std::int64_t (&v)[3]) const {
    memory::dims d{c.batch, channels};
    for (auto n : of_space(v)) d.push_back(n);
    return d;
  }
  memory::dims weights() const {
    memory::dims d;
    if (grouped) d.push_back(c.groups);
    d.push_back(grouped ? c.group_out() : c.out_channels);
    d.push_back(c.group_in());
    for (auto n : of_space(c.kernel)) d.push_back(n);
    return d;
  }
  memory::dims dilates() const {
    memory::dims d = of_space(c.dilation);
    for (auto& n : d) --n;
    return d;
  }
  /// What lies behind the last element, as far as the windows reach.
  memory::dims behind() const {
    memory::dims d;
    for (int i = 3 - space; i < 3; ++i)
      d.push_back(std::max<std::int64_t>(
          0, (c.out[i] - 1) * c.stride[i] + c.dilation[i] * (c.kernel[i] - 1) + 1 - c.in[i] - c.padding[i]));
    return d;
  }

  Tag rows() const { return space == 2 ? Tag::nchw : Tag::ncdhw; }
  Tag channels_last() const { return space == 2 ? Tag::nhwc : Tag::ndhwc; }
  Tag weight_tag(Arrangement::Order order) const {
    if (order == Arrangement::Blocked) return space == 2 ? Tag::OIhw16i16o : Tag::OIdhw16i16o;
    if (grouped) return space == 2 ? Tag::goihw : Tag::goidhw;
    return space == 2 ? Tag::oihw : Tag::oidhw;
  }
};

memory::desc floats(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

bool is_fast(std::string_view implementation) {
  return implementation.find("ref") == implementation.npos && implementation.find("gemm") == implementation.npos;
}

/// The primitives of a task, for weights in one order or in any.
class Maker {
 public:
  explicit Maker(const ConvTask& task) : task_(task), shape_(task.geometry) {
    attr_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  /// Weights in blocks serve as they are, or, backward to the data, with each block transposed, which is quickly done.
  /// Where there is more data than weights, the library's own choice is worth a slower way from one to the other.
  std::unique_ptr<Plan> make() {
    if (task_.w == Arrangement::Blocked && (task_.pass == ConvPass::Weight || has_more_weights())) {
      Tag transposed = shape_.space == 2 ? Tag::OIhw16o16i : Tag::OIdhw16o16i;
      if (auto plan = with(task_.pass == ConvPass::Data ? transposed : shape_.weight_tag(Arrangement::Blocked)))
        return plan;
    }
    return with(Tag::any);
  }

 private:
  bool has_more_weights() const {
    const ConvGeometry& c = task_.geometry;
    return c.out_channels * c.group_in() * c.taps() >
           c.batch * (c.in_channels * c.in_space() + c.out_channels * c.out_space());
  }

  std::unique_ptr<Plan> with(Tag weights) {
    const ConvGeometry& c = task_.geometry;
    // few channels lie in planes, if they do so already
    bool few = c.in_channels <= 4 && task_.x == Arrangement::Rows && task_.pass != ConvPass::Data;
    x_ = floats(shape_.data(c.in_channels, c.in), few ? Tag::any : shape_.channels_last());
    y_ = floats(shape_.data(c.out_channels, c.out), shape_.channels_last());
    w_ = floats(shape_.weights(), weights);
    try {
      return task_.pass == ConvPass::Forward ? forward() : task_.pass == ConvPass::Data ? data() : weight();
    } catch (const dnnl::error&) {  // there is no such implementation
      return nullptr;
    }
  }

  dnnl::convolution_forward::primitive_desc hint(bool bias) {
    memory::desc b = bias ? floats({task_.geometry.out_channels}, Tag::a) : memory::desc();
    return {engine(),
            dnnl::prop_kind::forward_training,
            dnnl::algorithm::convolution_direct,
            x_,
            w_,
            b,
            y_,
            shape_.of_space(task_.geometry.stride),
            shape_.dilates(),
            shape_.of_space(task_.geometry.padding),
            shape_.behind(),
            attr_};
  }

  std::unique_ptr<Plan> forward() {
    auto d = hint(task_.bias);
    if (!is_fast(d.impl_info_str())) return nullptr;
    return finish(dnnl::convolution_forward(d), d.src_desc(), d.weights_desc(), d.dst_desc(), d.scratchpad_desc());
  }
  std::unique_ptr<Plan> data() {
    auto& c = task_.geometry;
    dnnl::convolution_backward_data::primitive_desc d(engine(), dnnl::algorithm::convolution_direct, x_, w_, y_,
                                                      shape_.of_space(c.stride), shape_.dilates(),
                                                      shape_.of_space(c.padding), shape_.behind(), hint(false), attr_);
    if (!is_fast(d.impl_info_str())) return nullptr;
    return finish(dnnl::convolution_backward_data(d), d.diff_src_desc(), d.weights_desc(), d.diff_dst_desc(),
                  d.scratchpad_desc());
  }
  std::unique_ptr<Plan> weight() {
    auto& c = task_.geometry;
    dnnl::convolution_backward_weights::primitive_desc d(
        engine(), dnnl::algorithm::convolution_direct, x_, w_, y_, shape_.of_space(c.stride), shape_.dilates(),
        shape_.of_space(c.padding), shape_.behind(), hint(false), attr_);
    if (!is_fast(d.impl_info_str())) return nullptr;
    return finish(dnnl::convolution_backward_weights(d), d.src_desc(), d.diff_weights_desc(), d.diff_dst_desc(),
                  d.scratchpad_desc());
  }

  std::unique_ptr<Plan> finish(dnnl::primitive primitive, const memory::desc& x, const memory::desc& w,
                               const memory::desc& y, const memory::desc& scratch) {
    const ConvGeometry& c = task_.geometry;
    auto data = [&](std::int64_t channels, const std::int64_t (&space)[3], Arrangement::Order order) {
      bool either = channels == 1 || space[0] * space[1] * space[2] == 1;  // rows are channels-last, too
      bool last = order == Arrangement::ChannelsLast || either;
      return floats(shape_.data(channels, space), last ? shape_.channels_last() : shape_.rows());
    };
    auto plan = std::make_unique<Plan>();
    plan->pass = task_.pass;
    plan->primitive = std::move(primitive);
    plan->x = array(data(c.in_channels, c.in, task_.x), x, task_.pass == ConvPass::Data);
    plan->w = array(floats(shape_.weights(), shape_.weight_tag(task_.w)), w, task_.pass == ConvPass::Weight);
    plan->y = array(data(c.out_channels, c.out, task_.y), y, task_.pass == ConvPass::Forward);
    if (task_.bias) plan->bias = memory(floats({c.out_channels}, Tag::a), engine(), DNNL_MEMORY_NONE);
    plan->scratch_bytes = scratch.get_size();
    if (plan->scratch_bytes) plan->scratch = memory(scratch, engine(), DNNL_MEMORY_NONE);
    return plan;
  }

  static Array array(const memory::desc& outside, const memory::desc& inside, bool written) {
    Array a{memory(outside, engine(), DNNL_MEMORY_NONE), memory(inside, engine(), DNNL_MEMORY_NONE), {}};
    if (outside != inside) a.move = written ? dnnl::reorder(a.inside, a.outside) : dnnl::reorder(a.outside, a.inside);
    return a;
  }

  const ConvTask& task_;
  Shape shape_;
  dnnl::primitive_attr attr_;
  memory::desc x_, w_, y_;
};

/// The plans used last. Tasks that cannot be done are kept, too.
class Cache {
 public:
  const Plan* find(const ConvTask& task) {
    std::string key = key_of(task);
    auto at = places_.find(key);
    if (at != places_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return at->second->plan.get();
    }
    if (order_.size() >= most_plans) {
      places_.erase(order_.back().key);
      order_.pop_back();
    }
    order_.push_front({key, Maker(task).make()});
    places_.emplace(std::move(key), order_.begin());
    return order_.front().plan.get();
  }
  std::size_t size() const { return order_.size(); }

 private:
  struct Entry {
    std::string key;
    std::unique_ptr<Plan> plan;
  };
  static std::string key_of(const ConvTask& t) {
    std::string key(reinterpret_cast<const char*>(&t.geometry), sizeof t.geometry);
    for (int v : {int(t.pass), int(t.bias), int(t.x), int(t.w), int(t.y), t.threads}) key += char(v);
    return key;
  }
  std::list<Entry> order_;
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

Cache& cache() {
  static Cache* c = [] {
    dnnl::set_primitive_cache_capacity(0);  // ours holds what is used
    return new Cache;
  }();
  return *c;
}

/// Memory for the time of one run.
class Loan {
 public:
  explicit Loan(const OnednnServices& services) : services_(services) {}
  Loan(const Loan&) = delete;
  ~Loan() {
    for (int i = 0; i < n_; ++i) services_.give(handles_[i]);
  }
  void* take(std::size_t bytes) {
    void* at = services_.take(bytes, &handles_[n_]);
    ++n_;
    return at;
  }

 private:
  const OnednnServices& services_;
  void* handles_[4];
  int n_ = 0;
};

/// The memory of an operand, brought into the primitive's order where it is read.
memory prepared(const Array& a, void* data, bool written, Loan& loan, std::int64_t* moved) {
  memory outside = a.outside, inside = a.inside;
  if (!a.move) {
    inside.set_data_handle(data);
    return inside;
  }
  outside.set_data_handle(data);
  inside.set_data_handle(loan.take(inside.get_desc().get_size()));
  ++*moved;
  if (!written) dnnl::reorder(a.move).execute(stream(), outside, inside);
  return inside;
}

bool run(const Plan& p, void* x, void* w, const void* bias, void* y, const OnednnServices& services,
         std::int64_t* moved) {
  Loan loan(services);
  bool forward = p.pass == ConvPass::Forward, data = p.pass == ConvPass::Data;
  memory mx = prepared(p.x, x, data, loan, moved), mw = prepared(p.w, w, !forward && !data, loan, moved),
         my = prepared(p.y, y, forward, loan, moved);
  std::unordered_map<int, memory> args{{data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, mx},
                                       {forward || data ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS, mw},
                                       {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, my}};
  if (bias) {
    memory b = p.bias;
    b.set_data_handle(const_cast<void*>(bias));
    args.emplace(DNNL_ARG_BIAS, b);
  }
  if (p.scratch_bytes) {
    memory s = p.scratch;
    s.set_data_handle(loan.take(p.scratch_bytes));
    args.emplace(DNNL_ARG_SCRATCHPAD, s);
  }
  p.primitive.execute(stream(), args);
  const Array& out = data ? p.x : forward ? p.y : p.w;
  if (out.move) {
    memory outside = out.outside, inside = data ? mx : forward ? my : mw;
    outside.set_data_handle(data ? x : forward ? y : w);
    dnnl::reorder(out.move).execute(stream(), inside, outside);
  }
  return true;
}

const OnednnTable table{[](const ConvTask& task) noexcept -> const void* {
                          try {
                            if (omp_get_max_threads() != task.threads) omp_set_num_threads(task.threads);
                            return cache().find(task);
                          } catch (const std::exception&) {
                            return nullptr;
                          }
                        },
                        [](const void* plan, void* x, void* w, const void* bias, void* y,
                           const OnednnServices& services, std::int64_t* moved) noexcept {
                          try {
                            return run(*static_cast<const Plan*>(plan), x, w, bias, y, services, moved);
                          } catch (const std::exception&) {
                            return false;
                          }
                        },
                        []() noexcept { return std::int64_t(cache().size()); }, std::int64_t(most_plans)};

}  // namespace
}  // namespace rushlight

extern "C" __attribute__((visibility("default"))) const rushlight::OnednnTable* rushlight_onednn() {
  return &rushlight::table;
}
