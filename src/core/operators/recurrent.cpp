// Recurrent layers: one layer in one direction over a whole sequence, in one node.
//
// All inputs meet their weights in one product before the steps; the steps are a kernel (kernels/recurrent.h), and so
// is their derivative. Other types, and a derivative that is itself recorded, take the same equations in differentiable
// operators (composed).
#include "kernels/recurrent.h"

#include <cstring>

#include "operators/operators.h"
#include "operators/recorded_vjp.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// The operator's tensors, in the order of its edges.
enum Input { X, H0, C0, WIh, WHh, BIh, BHh, WHr, input_count };

struct Layer {
  Cell cell;
  Steps steps;
  bool is_packed;  ///< the input has no dimension of time
};

TensorRef copy_of_rows(const TensorRef& t) {
  TensorRef copy = empty(t->sizes(), t->dtype);
  copy_numbers(*copy, *t);
  return copy;
}

/// (time, batch, n), or (total, n) where packed, of the rows `t`.
TensorRef as_sequence(const TensorRef& t, const Layer& l) {
  return l.is_packed ? t : view(*t, Dims{l.steps.count(), l.steps.batch(), t->size(1)});
}
TensorRef as_rows(const Tensor& t) { return reshape(t, Dims{-1, t.size(t.ndim - 1)}); }

TensorRef bias_of_inputs(const Layer& l, const TensorList& in) {
  // a gate of the GRU multiplies its recurrent bias
  if (!in[BIh] || l.cell == Cell::Gru) return in[BIh];
  return add(*in[BIh], *in[BHh]);
}

// ---- the equations

TensorRef tanh_of(const TensorRef& t) {
  static PointwiseOp& op = pointwise_op("tanh");
  return pointwise(op, {t});
}

struct State {
  TensorRef h, c;
};

State composed_lstm(const TensorRef& gates, const TensorRef& c, const TensorRef& w_hr) {
  TensorList g = chunk(*gates, 4, 1);
  TensorRef next = add(*mul(sigmoid(g[1]), c), *mul(sigmoid(g[0]), tanh_of(g[2])));
  TensorRef h = mul(sigmoid(g[3]), tanh_of(next));
  return {w_hr ? linear(*h, *w_hr, nullptr) : h, next};
}

TensorRef composed_gru(const TensorRef& given, const TensorRef& kept, const TensorRef& h) {
  TensorList x = chunk(*given, 3, 1), k = chunk(*kept, 3, 1);
  TensorRef n = tanh_of(add(*x[2], *mul(sigmoid(add(*x[0], *k[0])), k[2])));
  return add(*n, *mul(sigmoid(add(*x[1], *k[1])), sub(h, n)));
}

State composed_step(const Layer& l, const TensorList& in, const TensorRef& given, const State& s) {
  if (l.cell == Cell::Gru) return {composed_gru(given, linear(*s.h, *in[WHh], in[BHh].get()), s.h), nullptr};
  TensorRef gates = add(*given, *linear(*s.h, *in[WHh], nullptr));
  if (l.cell == Cell::Lstm) return composed_lstm(gates, s.c, in[WHr]);
  static PointwiseOp& relu = pointwise_op("relu");
  return {l.cell == Cell::Tanh ? tanh_of(gates) : pointwise(relu, {gates}), nullptr};
}

/// The first rows of a state replaced.
TensorRef replaced(const TensorRef& all, const TensorRef& first) {
  std::int64_t n = first->size(0);
  if (n == all->size(0)) return first;
  TensorRef rest = narrow(*all, 0, n, all->size(0) - n);
  return cat({first.get(), rest.get()}, 0);
}

TensorList composed(const Layer& l, const TensorList& in) {
  TensorRef given = linear(*as_rows(*in[X]), *in[WIh], bias_of_inputs(l, in).get());
  State s{in[H0], in[C0]};
  TensorList outputs(std::size_t(l.steps.count()));
  for (std::int64_t i = 0; i < l.steps.count(); ++i) {
    std::int64_t t = l.steps.in_order(i), n = l.steps.rows(t);
    State active{narrow(*s.h, 0, 0, n), s.c ? narrow(*s.c, 0, 0, n) : nullptr};
    active = composed_step(l, in, narrow(*given, 0, l.steps.first[std::size_t(t)], n), active);
    outputs[std::size_t(t)] = active.h;
    s = {replaced(s.h, active.h), s.c ? replaced(s.c, active.c) : nullptr};
  }
  return {as_sequence(cat(pointers(outputs), 0), l), s.h, s.c};
}

// ---- the kernels

/// What forward leaves to backward beside the inputs and outputs.
struct Workspace {
  TensorRef gates, cells, kept;
};

template <class T>
const T* numbers(const TensorRef& t) {
  return t ? t->read_as<T>() : nullptr;
}
template <class T>
T* places(const TensorRef& t) {
  return t ? t->write_as<T>() : nullptr;
}

template <class T>
RecurrentLayer<T> kernel_layer(const Layer& l, const TensorRef& w_ih, const TensorRef& w_hh, const TensorRef& w_hr) {
  std::int64_t hidden = w_hh->size(0) / gates_of(l.cell);
  return {l.cell, l.steps, w_ih->size(1), hidden, w_hh->size(1), numbers<T>(w_ih), numbers<T>(w_hh), numbers<T>(w_hr)};
}

/// A sequence as it lies, or a copy where its rows are not runs of numbers; `repeated`: one number will do as well.
TensorRef readable(const Tensor& t, bool repeated) {
  std::int64_t step = t.stride(t.ndim - 1);
  bool as_it_lies = t.is_contiguous() || (t.ndim == 3 && (step == 1 || (repeated && step == 0)));
  return as_it_lies ? TensorRef(const_cast<Tensor*>(&t)) : packed(t);
}
template <class T>
Rows<T> rows_of(const TensorRef& t) {
  if (!t) return {};
  int last = t->ndim - 1;
  if (t->is_contiguous()) return {t->read_as<T>(), false, 0, t->size(last), 1};
  return {t->read_as<T>(), true, t->stride(0), t->stride(1), t->stride(last)};
}

TensorRef packed_or_null(const TensorRef& t) { return t ? packed(*t) : nullptr; }

/// Output, last h and last c; `keeps`: backward will follow.
TensorList computed(const Layer& l, const TensorList& in, bool keeps, Workspace& space) {
  GradScope off(false);
  DType dtype = in[X]->dtype;
  TensorRef x = readable(*in[X], false), w_ih = packed(*in[WIh]), w_hh = packed(*in[WHh]),
            w_hr = packed_or_null(in[WHr]), b_ih = packed_or_null(bias_of_inputs(l, in)),
            b_hh = packed_or_null(in[BHh]);
  std::int64_t total = l.steps.total(), hidden = w_hh->size(0) / gates_of(l.cell);
  space.gates = empty(Dims{total, w_hh->size(0)}, dtype);
  if (keeps && l.cell == Cell::Lstm) space.cells = empty(Dims{total, hidden}, dtype);
  if (keeps && l.cell == Cell::Gru) space.kept = empty(Dims{total, hidden}, dtype);
  TensorRef h = copy_of_rows(in[H0]), c = in[C0] ? copy_of_rows(in[C0]) : nullptr,
            y = empty(Dims{total, w_hh->size(1)}, dtype);
  visit_wide(dtype, "recurrent layer", [&]<class T>() {
    recurrent_forward(
        kernel_layer<T>(l, w_ih, w_hh, w_hr),
        RecurrentForward<T>{rows_of<T>(x), numbers<T>(b_ih), numbers<T>(b_hh), places<T>(space.gates), places<T>(h),
                            places<T>(c), places<T>(y), places<T>(space.cells), places<T>(space.kept)});
  });
  return {as_sequence(y, l), h, c};
}

TensorRef copy_or_zeros(const TensorRef& t, IntSpan sizes, DType dtype) {
  return t ? copy_of_rows(t) : zeros(sizes, dtype);
}

TensorRef empty_if(bool wanted, const TensorRef& like) { return wanted ? empty(like->sizes(), like->dtype) : nullptr; }

/// `d_gates` and `d_kept`: the gradients of what inputs and states add to the gates.
template <class T>
void set_weight_gradients(Vjp& v, const Layer& l, const RecurrentLayer<T>& layer, const TensorList& in,
                          const TensorRef& y, const TensorRef& h0, const TensorRef& d_gates, const TensorRef& d_kept) {
  TensorRef x = packed(*in[X]), before, w_ih = empty_if(v.needs(WIh), in[WIh]), w_hh = empty_if(v.needs(WHh), in[WHh]),
            b_ih = empty_if(v.needs(BIh), in[BIh]), b_hh = empty_if(v.needs(BHh), in[BHh]);
  if (w_hh) {
    before = empty(Dims{l.steps.total(), layer.width}, x->dtype);
    states_before(l.steps, y->read(), h0->read(), layer.width * h0->item_size(), before->write());
  }
  recurrent_weight_gradients(
      layer, RecurrentWeightGradients<T>{numbers<T>(d_gates), numbers<T>(d_kept), numbers<T>(x), numbers<T>(before),
                                         places<T>(w_ih), places<T>(w_hh), places<T>(b_ih), places<T>(b_hh)});
  if (w_ih) v.set(WIh, w_ih);
  if (w_hh) v.set(WHh, w_hh);
  if (b_ih) v.set(BIh, b_ih);
  if (b_hh) v.set(BHh, b_hh);
}

template <class T>
void set_gradients(Vjp& v, const Layer& l, const TensorList& in, const TensorRef& y_, const Workspace& space) {
  DType dtype = in[X]->dtype;
  TensorRef w_ih = packed(*in[WIh]), w_hh = packed(*in[WHh]), w_hr = packed_or_null(in[WHr]), h0 = packed(*in[H0]),
            c0 = packed_or_null(in[C0]), y = packed(*y_), dy = v.grad(0) ? readable(*v.grad(0), true) : nullptr;
  RecurrentLayer<T> layer = kernel_layer<T>(l, w_ih, w_hh, w_hr);
  std::int64_t total = l.steps.total();
  TensorRef dh = copy_or_zeros(v.grad(1), h0->sizes(), dtype),
            dc = c0 ? copy_or_zeros(v.grad(2), c0->sizes(), dtype) : nullptr,
            d_gates = empty(Dims{total, layer.gates()}, dtype), d_kept = d_gates, d_state, unprojected;
  if (l.cell == Cell::Gru) d_kept = empty(Dims{total, layer.gates()}, dtype);
  if (w_hr) {
    d_state = empty(Dims{total, layer.width}, dtype);
    unprojected = empty(Dims{total, layer.hidden}, dtype);
  }
  recurrent_backward(layer, RecurrentBackward<T>{numbers<T>(space.gates), numbers<T>(h0), numbers<T>(c0), numbers<T>(y),
                                                 numbers<T>(space.cells), numbers<T>(space.kept), rows_of<T>(dy),
                                                 places<T>(dh), places<T>(dc), places<T>(d_gates), places<T>(d_kept),
                                                 places<T>(d_state), places<T>(unprojected)});
  set_weight_gradients<T>(v, l, layer, in, y, h0, d_gates, d_kept);
  if (v.needs(WHr)) v.set(WHr, mm(*transpose(*d_state, 0, 1), *unprojected));
  if (v.needs(X)) v.set(X, reshape(*mm(*d_gates, *in[WIh]), in[X]->sizes()));
  if (v.needs(H0)) v.set(H0, dh);
  if (v.needs(C0)) v.set(C0, dc);
}

void vjp(Vjp& v, const Layer& l) {
  TensorList in;
  for (int i = 0; i < input_count; ++i) in.push_back(v.saved(i));
  if (differentiates()) return recorded_vjp(v, in, [&](const TensorList& inputs) { return composed(l, inputs); });
  Workspace space{v.saved(input_count + 1), v.saved(input_count + 2), v.saved(input_count + 3)};
  TensorRef y = v.saved(input_count);
  visit_wide(in[X]->dtype, "recurrent layer", [&]<class T>() { set_gradients<T>(v, l, in, y, space); });
}

// ---- the operator

Cell cell_of(const std::string& mode) {
  if (mode == "LSTM") return Cell::Lstm;
  if (mode == "GRU") return Cell::Gru;
  if (mode == "RNN_TANH") return Cell::Tanh;
  check(mode == "RNN_RELU", "Unrecognized RNN mode: ", mode);
  return Cell::Relu;
}

Layer layer_of(const std::string& mode, const Tensor& input, const Tensor* batch_sizes, bool reverse) {
  Layer l{cell_of(mode), {{0}, reverse}, batch_sizes != nullptr};
  int dims = batch_sizes ? 2 : 3;
  check(input.ndim == dims, "RNN: input must have ", dims, " dimensions, got ", int(input.ndim));
  if (!batch_sizes) {
    check(input.size(0) > 0, "Expected sequence length to be larger than 0 in RNN");
    for (std::int64_t t = 1; t <= input.size(0); ++t) l.steps.first.push_back(t * input.size(1));
    return l;
  }
  check(batch_sizes->ndim == 1 && batch_sizes->dtype == DType::Int64 && batch_sizes->numel > 0,
        "batch_sizes tensor should be a 1D tensor of int64 with at least one entry, got shape ",
        to_string(batch_sizes->sizes()), " of ", info(batch_sizes->dtype).scalar_name);
  TensorRef sizes = packed(*batch_sizes);
  auto* n = sizes->read_as<std::int64_t>();
  for (std::int64_t t = 0; t < sizes->numel; ++t) {
    check(n[t] > 0 && (t == 0 || n[t] <= n[t - 1]), "batch_sizes must be positive and must not increase, got ", n[t],
          " at step ", t);
    l.steps.first.push_back(l.steps.total() + n[t]);
  }
  check(l.steps.total() == input.size(0), "Expected packed input of ", l.steps.total(),
        " rows, the sum of batch_sizes, but got ", input.size(0));
  return l;
}

void check_operand(const Tensor* t, IntSpan sizes, DType dtype, const char* name) {
  if (!t) return;
  check(equal(t->sizes(), sizes), "RNN: expected ", name, " of shape ", to_string(sizes), ", got ",
        to_string(t->sizes()));
  check(t->dtype == dtype, "RNN: expected ", name, " of the input's type ", info(dtype).scalar_name, ", got ",
        info(t->dtype).scalar_name);
}

void check_operands(const Layer& l, const TensorList& in) {
  DType d = in[X]->dtype;
  std::int64_t batch = l.steps.batch(), rows = in[WHh]->ndim ? in[WHh]->size(0) : 0, hidden = rows / gates_of(l.cell),
               width = in[WHr] && in[WHr]->ndim ? in[WHr]->size(0) : hidden;
  check(is_floating(d), "RNN: expected floating point input, got ", info(d).scalar_name);
  check((in[C0] != nullptr) == (l.cell == Cell::Lstm), "RNN: a cell state is what an LSTM has");
  check((in[BIh] != nullptr) == (in[BHh] != nullptr), "RNN: expected both biases or none");
  check_operand(in[WIh].get(), Dims{rows, in[X]->size(in[X]->ndim - 1)}, d, "w_ih");
  check_operand(in[WHh].get(), Dims{hidden * gates_of(l.cell), width}, d, "w_hh");
  check_operand(in[BIh].get(), Dims{rows}, d, "b_ih");
  check_operand(in[BHh].get(), Dims{rows}, d, "b_hh");
  check_operand(in[WHr].get(), Dims{width, hidden}, d, "w_hr");
  check_operand(in[H0].get(), Dims{batch, width}, d, "the initial state");
  check_operand(in[C0].get(), Dims{batch, hidden}, d, "the initial cell state");
}

const char* node_name(Cell cell) {
  return cell == Cell::Lstm ? "LstmLayerBackward0" : cell == Cell::Gru ? "GruLayerBackward0" : "RnnLayerBackward0";
}

TensorList rnn_layer(const std::string& mode, const Tensor& input, const Tensor* batch_sizes, const Tensor& h0,
                     const Tensor* c0, const Tensor& w_ih, const Tensor& w_hh, const Tensor* b_ih, const Tensor* b_hh,
                     const Tensor* w_hr, bool reverse) {
  const Tensor* operands[input_count] = {&input, &h0, c0, &w_ih, &w_hh, b_ih, b_hh, w_hr};
  TensorList in;
  for (auto* t : operands) in.emplace_back(const_cast<Tensor*>(t));
  Layer l = layer_of(mode, input, batch_sizes, reverse);
  check_operands(l, in);
  TensorList out;
  if (input.dtype != DType::Float32 && input.dtype != DType::Float64) {
    out = composed(l, in);
  } else {
    Workspace space;
    out = computed(l, in, any_needs_record(operands), space);
    Save saves[input_count + 4];
    for (int i = 0; i < input_count; ++i) saves[i] = {in[std::size_t(i)].get(), i, -1};
    saves[input_count] = save_out(out[0]);
    saves[input_count + 1] = save_other(space.gates);
    saves[input_count + 2] = save_other(space.cells);
    saves[input_count + 3] = save_other(space.kept);
    record_many(node_name(l.cell), out, operands, saves, [l](Vjp& v) { vjp(v, l); });
  }
  if (!out[2]) out.pop_back();
  return out;
}

const Define recurrent[] = {
    {"_rnn_layer(str mode, Tensor input, Tensor? batch_sizes, Tensor h0, Tensor? c0, Tensor w_ih, Tensor w_hh, Tensor? "
     "b_ih, Tensor? b_hh, Tensor? w_hr, bool reverse)",
     &rnn_layer, NnFunction,
     "One recurrent layer in one direction: input (T, N, I), or (total, I) packed by batch_sizes, and states (N, H) to "
     "[output, last h] and for LSTM the last c."},
};

}  // namespace
}  // namespace rushlight
