#include "operators/layout.h"

#include "kernels/rearrange.h"

namespace rushlight {

LayoutStats layout_stats;

namespace {

constexpr std::int64_t side = 16;  // of a block
Pending laid{nullptr, nullptr};    // what a storage's `pending` says where nothing but the order is to be changed

bool fits(const Tensor& t) { return t.ndim >= 3 && t.numel > 0 && t.is_contiguous(); }

/// The sizes (outer, inner, rest) of a storage in a layout.
Moved sizes_in(const Storage& s, const Arrangement& l) {
  return {l.outer, l.inner, std::int64_t(s.size) / (l.outer * l.inner * l.item), l.item};
}

}  // namespace

void Storage::filled() { pending = layout ? &laid : nullptr; }

void Storage::settle() {
  read_laid();
  if (layout) rearrange(this, {});
}

Arrangement layout_of(const Tensor& t) {
  const Storage& s = *t.storage;
  const Arrangement& l = s.layout;
  if (!l || !fits(t) || t.offset != 0 || t.item_size() != l.item || t.size(0) != l.outer || t.size(1) != l.inner ||
      std::size_t(t.numel * l.item) != s.size)
    return {};
  return l;
}

Arrangement channels_last(IntSpan sizes, DType dtype) {
  std::int64_t n = count_elements(sizes);
  if (sizes.size() < 3 || n == 0 || sizes[1] == 1 || n == sizes[0] * sizes[1]) return {};
  return {Arrangement::ChannelsLast, std::uint8_t(item_size(dtype)), sizes[0], sizes[1]};
}

Arrangement blocked(IntSpan sizes, DType dtype) {
  if (sizes.size() < 3 || count_elements(sizes) == 0 || sizes[0] % side || sizes[1] % side) return {};
  return {Arrangement::Blocked, std::uint8_t(item_size(dtype)), sizes[0], sizes[1]};
}

TensorRef empty_laid(IntSpan sizes, DType dtype, const Arrangement& layout) {
  TensorRef t = empty(sizes, dtype);
  t->storage->layout = layout;
  t->storage->filled();
  ++layout_stats.laid;
  return t;
}

void rearrange(Storage* s, const Arrangement& layout) {
  if (s->readers) s->flush_readers();
  Ref<Storage> other = new_storage(s->size);
  if (s->layout) {
    bring_to_rows(s->layout.order, sizes_in(*s, s->layout), s->bytes, other->bytes);
  } else {
    bring_from_rows(layout.order, sizes_in(*s, layout), s->bytes, other->bytes);
  }
  exchange_bytes(s, other.get());
  s->layout = layout;
  s->filled();
  ++layout_stats.rearranged;
}

bool try_rearrange(const Tensor& t, const Arrangement& layout) {
  Storage* s = t.storage;
  if (s->pending || s->layout || s->reachable() || s->shared || s->extent > s->size || !s->block_class ||
      t.offset != 0 || !t.is_contiguous() || std::size_t(t.numel * t.item_size()) != s->size || Unlocked::running)
    return false;
  rearrange(s, layout);
  return true;
}

void settle_shared(std::initializer_list<const Tensor*> operands) {
  for (auto* a = operands.begin(); a != operands.end(); ++a)
    for (auto* b = operands.begin(); b != a; ++b)
      if (*a && *b && (*a)->storage == (*b)->storage) (*a)->storage->read();
}

TensorRef laid_copy(const Tensor& t, const Arrangement& layout) {
  TensorRef out = empty_laid(t.sizes(), t.dtype, layout);
  bring_from_rows(layout.order, sizes_in(*out->storage, layout), t.read(), out->storage->bytes);
  ++layout_stats.rearranged;
  return out;
}

}  // namespace rushlight
