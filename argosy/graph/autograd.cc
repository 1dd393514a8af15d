#include "argosy/graph/autograd.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "argosy/base/denormals.h"
#include "argosy/base/rng.h"
#include "argosy/graph/builder.h"

namespace argosy::dynamic {

/// An executed operator, with the inputs of its gradient.
struct Origin {
  struct Input {
    Tensor data;
    ValuePtr value = {};  // null if no gradient flows
    uint64_t version = 0;
  };

  const OpDef* op = nullptr;
  Attrs attrs = {};
  std::vector<Input> in = {};
  std::vector<Tensor> out = {};
  std::vector<std::weak_ptr<Value>> watched = {};  // outputs whose gradient is kept
  uint64_t number = 0;                             // operators run later have greater ones
  std::shared_ptr<SumOverRanks> ranks = {};
  bool spent = false;  // backward has freed it

  ~Origin() { release(); }
  void release();
};

/// Without recursion, as a chain of values may be longer than the stack is deep.
void Origin::release() {
  out.clear();
  std::vector<Input> pending = std::move(in);
  in.clear();
  while (!pending.empty()) {
    const Input input = std::move(pending.back());
    pending.pop_back();
    if (input.value == nullptr || input.value.use_count() > 1) continue;
    const std::shared_ptr<Origin>& before = input.value->origin;
    if (before == nullptr || before.use_count() > 1) continue;
    std::ranges::move(before->in, std::back_inserter(pending));
    before->in.clear();
  }
}

namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

std::vector<VarType> types_of(std::span<const ValuePtr> in) {
  std::vector<VarType> types;
  types.reserve(in.size());
  for (const ValuePtr& value : in) types.push_back({value->data.shape(), value->data.dtype()});
  return types;
}

/// "linear(f32[64,13], f32[12,1]): why".
std::string explained(const OpDef& op, std::span<const ValuePtr> in, const char* why) {
  std::ostringstream out;
  out << op.name << "(";
  for (size_t i = 0; i < in.size(); ++i)
    out << (i == 0 ? "" : ", ") << in[i]->data.dtype() << in[i]->data.shape();
  out << "): " << why;
  return out.str();
}

std::vector<Tensor> run(const OpDef& op, std::span<const ValuePtr> in, const Attrs& attrs,
                        const ApplyMode& mode) {
  const std::vector<VarType> types = types_of(in);
  std::vector<VarType> results;
  infer(op, {types, attrs, results});
  std::vector<Tensor> out;
  out.reserve(results.size());
  if (op.trait == OpTrait::view) {
    out.push_back(in[0]->data.reshape(results[0].shape));
    return out;
  }
  std::vector<Tensor*> inputs, outputs;
  inputs.reserve(in.size());
  outputs.reserve(results.size());
  for (const ValuePtr& value : in) inputs.push_back(&value->data);
  for (const VarType& type : results) {
    out.push_back(Tensor::uninitialized(type.shape, type.dtype));
    outputs.push_back(&out.back());
  }
  const FlushDenormals flush;
  op.run({inputs, outputs, attrs, mode.random_seed, mode.ranks.get()});
  return out;
}

/// The seed of a backward pass.
Tensor ones_like(const Tensor& x) {
  Tensor ones = Tensor::uninitialized(x.shape(), x.dtype());
  Tensor* in = const_cast<Tensor*>(&x);
  Tensor* out = &ones;
  find_op("ones_like").run({{&in, 1}, {&out, 1}, {}});
  return ones;
}

Tensor sum(const Tensor& a, const Tensor& b) {
  static const OpDef& add = find_op("add");
  Tensor total = Tensor::uninitialized(a.shape(), a.dtype());
  Tensor* in[] = {const_cast<Tensor*>(&a), const_cast<Tensor*>(&b)};
  Tensor* out = &total;
  const FlushDenormals flush;
  add.run({in, {&out, 1}, {}});
  return total;
}

void add_to(std::optional<Tensor>& total, const Tensor& more) {
  total = total ? sum(*total, more) : more;
}

/// Gives each key that it sees the next number, from 0 on.
class Numbering {
 public:
  explicit Numbering(size_t most)
      : mask_(std::bit_ceil(most * 2 + 2) - 1), slots_(mask_ + 1, Slot{0, kFree}) {}

  size_t operator[](int64_t key) {
    size_t at = mix(static_cast<uint64_t>(key)) & mask_;
    while (slots_[at].number != kFree && slots_[at].key != key) at = (at + 1) & mask_;
    if (slots_[at].number == kFree) {
      slots_[at] = {key, keys_.size()};
      keys_.push_back(key);
    }
    return slots_[at].number;
  }
  const std::vector<int64_t>& keys() const { return keys_; }

 private:
  static constexpr size_t kFree = SIZE_MAX;
  struct Slot {
    int64_t key;
    size_t number;
  };
  size_t mask_;
  std::vector<Slot> slots_;
  std::vector<int64_t> keys_;
};

/// Rows of a table with a gradient for each, rows perhaps named more than once.
struct Lookup {
  Tensor rows;    // i32 or i64
  Tensor values;  // a gradient for each
  std::optional<int64_t> padding = {};
};

template <class F>
void for_each_row(const Lookup& lookup, F f) {
  const auto visit = [&](auto rows) {
    for (size_t i = 0; i < rows.size(); ++i)
      if (static_cast<int64_t>(rows[i]) != lookup.padding) f(i, static_cast<int64_t>(rows[i]));
  };
  if (lookup.rows.dtype() == DType::i32)
    visit(lookup.rows.as<int32_t>());
  else
    visit(lookup.rows.as<int64_t>());
}

template <class T>
void add_rows(std::span<const Lookup> lookups, Numbering& numbers, size_t dim, T* to) {
  for (const Lookup& lookup : lookups) {
    const T* from = lookup.values.as<T>().data();
    for_each_row(lookup, [&](size_t i, int64_t row) {
      T* total = to + numbers[row] * dim;
      for (size_t k = 0; k < dim; ++k) total[k] += from[i * dim + k];
    });
  }
}

RowGradient merged(std::span<const Lookup> lookups, int64_t dim) {
  size_t most = 0;
  for (const Lookup& lookup : lookups) most += static_cast<size_t>(lookup.rows.numel());
  Numbering numbers(most);
  for (const Lookup& lookup : lookups)
    for_each_row(lookup, [&](size_t, int64_t row) { numbers[row]; });
  const std::vector<int64_t>& rows = numbers.keys();
  const auto count = static_cast<int64_t>(rows.size());
  RowGradient result{.rows = Tensor::of<int64_t>({count}, rows),
                     .values = Tensor({count, dim}, lookups[0].values.dtype())};
  const auto width = static_cast<size_t>(dim);
  if (result.values.dtype() == DType::f32)
    add_rows(lookups, numbers, width, result.values.as<float>().data());
  else
    add_rows(lookups, numbers, width, result.values.as<double>().data());
  return result;
}

bool is_row_lookup(const Origin& origin) {
  return origin.op->name == "embedding" && origin.attrs.integer("sparse") != 0 &&
         origin.in[0].value != nullptr && origin.in[0].value->origin == nullptr;
}

/// How often the operators that a value was computed by use each leaf.
std::unordered_map<const Value*, size_t> uses_of_leaves(const Value& of) {
  std::unordered_map<const Value*, size_t> uses;
  std::unordered_set<const Origin*> seen;
  std::vector<const Origin*> pending;
  const auto visit = [&](const Origin* origin) {
    if (seen.insert(origin).second) pending.push_back(origin);
  };
  if (of.origin != nullptr) visit(of.origin.get());
  while (!pending.empty()) {
    const Origin& origin = *pending.back();
    pending.pop_back();
    for (const Origin::Input& input : origin.in) {
      if (input.value == nullptr) continue;
      if (input.value->origin == nullptr)
        ++uses[input.value.get()];
      else
        visit(input.value->origin.get());
    }
  }
  return uses;
}

/// One backward pass.
class Sweep {
 public:
  /// Collects the gradients of these values; without a list, adds to the gradients of all leaves.
  explicit Sweep(Graph graph, std::optional<std::span<const ValuePtr>> only = {}) : graph_(graph) {
    listed_ = only.has_value();
    for (size_t i = 0; only && i < only->size(); ++i) {
      const ValuePtr& value = (*only)[i];
      if (value->origin != nullptr) watched_[value->origin.get()].push_back(value.get());
      sinks_[value.get()];
    }
  }

  void start(const ValuePtr& of, const std::optional<Tensor>& seed) {
    check<ConfigError>(is_float(of->data.dtype()), "backward: only floats have gradients, this is ",
                       of->data.dtype(), of->data.shape());
    check<ConfigError>(of->trains,
                       "backward: nothing that this value was computed from asks for a "
                       "gradient (stop_gradient is true for all of it)");
    if (seed)
      check<ConfigError>(seed->shape() == of->data.shape() && seed->dtype() == of->data.dtype(),
                         "backward: the gradient is ", seed->dtype(), seed->shape(), ", the value ",
                         of->data.dtype(), of->data.shape());
    flow(of, seed ? *seed : ones_like(of->data));
  }

  /// To be told of the leaves of `of`, which alone was started from.
  void tell(const Value& of, WhenFinal when_final) {
    when_final_ = when_final;
    if (when_final_) uses_ = uses_of_leaves(of);
  }

  void run() {
    while (!pending_.empty()) {
      auto node = pending_.extract(pending_.begin());
      differentiate(node.mapped());
    }
    for (auto& [leaf, lookups] : lookups_) add_lookups(*leaf, lookups);
  }

  std::optional<Tensor> of(const ValuePtr& value) { return sinks_[value.get()]; }

 private:
  struct Pending {
    std::shared_ptr<Origin> origin;
    std::vector<std::optional<Tensor>> dout;
  };

  void flow(const ValuePtr& value, const Tensor& gradient) {
    if (value->origin == nullptr) return to_leaf(*value, gradient);
    Pending& next = pending_[value->origin->number];
    if (next.origin == nullptr) {
      next.origin = value->origin;
      next.dout.resize(std::max<size_t>(value->origin->out.size(), value->output + 1));
    }
    add_to(next.dout[value->output], gradient);
  }

  void to_leaf(Value& leaf, const Tensor& gradient) {
    if (listed_) {
      const auto sink = sinks_.find(&leaf);
      if (sink != sinks_.end()) add_to(sink->second, gradient);
      return;
    }
    if (leaf.row_grad) {
      leaf.grad = leaf.row_grad->dense(leaf.data.shape());
      leaf.row_grad.reset();
    }
    ++leaf.reached;
    add_to(leaf.grad, gradient);
  }

  void hand_out(const Pending& node) {
    if (listed_) {
      const auto found = watched_.find(node.origin.get());
      if (found == watched_.end()) return;
      for (const Value* value : found->second)
        if (node.dout[value->output]) add_to(sinks_[value], *node.dout[value->output]);
      return;
    }
    for (const std::weak_ptr<Value>& weak : node.origin->watched) {
      const ValuePtr value = weak.lock();
      if (value != nullptr && node.dout[value->output])
        add_to(value->grad, *node.dout[value->output]);
    }
  }

  void differentiate(const Pending& node) {
    Origin& origin = *node.origin;
    check<ConfigError>(!origin.spent, "backward: ", origin.op->name,
                       " was differentiated before and freed; call the earlier backward with "
                       "retain_graph=True");
    hand_out(node);
    if (is_row_lookup(origin) && !listed_) {
      look_up(origin, *node.dout[0]);
    } else {
      run_gradient(origin, node.dout);
      if (when_final_) count_uses(origin);
    }
    if (graph_ == Graph::kept) return;
    origin.spent = true;
    origin.release();
  }

  void run_gradient(Origin& origin, std::span<const std::optional<Tensor>> douts) {
    Builder g([](const VarDesc&) -> Tensor { fail("a gradient function asked for a variable"); },
              {.ranks = origin.ranks.get()});
    std::vector<Var> in, out, dout;
    std::vector<bool> needs;
    for (const Origin::Input& input : origin.in) {
      check<ConfigError>(input.value == nullptr || input.value->version == input.version,
                         "backward: an input of ", origin.op->name, " ", input.data.dtype(),
                         input.data.shape(), " was changed in place after it was used");
      in.push_back(g.given(input.data));
      needs.push_back(input.value != nullptr && input.value->trains);
    }
    for (const Tensor& value : origin.out) out.push_back(g.given(value));
    for (const std::optional<Tensor>& d : douts) dout.push_back(d ? g.given(*d) : Var{});
    if (std::ranges::find(needs, true) == needs.end()) return;
    const std::vector<Var> din = origin.op->grad({g, in, out, dout, origin.attrs, needs});
    for (size_t i = 0; i < din.size(); ++i)
      if (din[i] && needs[i]) flow(origin.in[i].value, din[i].value());
  }

  void count_uses(const Origin& origin) {
    for (const Origin::Input& input : origin.in) {
      if (input.value == nullptr || input.value->origin != nullptr) continue;
      if (--uses_[input.value.get()] == 0) when_final_(*input.value);
    }
  }

  void look_up(const Origin& origin, const Tensor& dout) {
    Lookup lookup{.rows = origin.in[1].data, .values = dout};
    if (origin.attrs.has("padding_idx")) lookup.padding = origin.attrs.integer("padding_idx");
    lookups_[origin.in[0].value].push_back(std::move(lookup));
  }

  /// As for other leaves, this pass's gradient is completed before it is added to earlier ones.
  static void add_lookups(Value& leaf, std::span<const Lookup> lookups) {
    RowGradient rows = merged(lookups, leaf.data.shape()[1]);
    ++leaf.reached;
    if (leaf.grad) {
      add_to(leaf.grad, rows.dense(leaf.data.shape()));
    } else if (leaf.row_grad) {
      leaf.row_grad = sum_of(std::array{*leaf.row_grad, std::move(rows)});
    } else {
      leaf.row_grad = std::move(rows);
    }
  }

  Graph graph_;
  bool listed_ = false;
  std::map<uint64_t, Pending, std::greater<>> pending_;  // the operators run last come first
  std::unordered_map<const Origin*, std::vector<const Value*>> watched_;
  std::unordered_map<const Value*, std::optional<Tensor>> sinks_;
  std::unordered_map<ValuePtr, std::vector<Lookup>> lookups_;
  WhenFinal when_final_;
  std::unordered_map<const Value*, size_t> uses_;  // of leaves, still to come
};

}  // namespace

Tensor RowGradient::dense(const Shape& table) const {
  Tensor all(table, values.dtype());
  const auto row_of = rows.as<int64_t>();
  const size_t bytes = static_cast<size_t>(table[1]) * size_of(values.dtype());
  for (size_t i = 0; i < row_of.size(); ++i)
    std::memcpy(all.data() + static_cast<size_t>(row_of[i]) * bytes, values.data() + i * bytes,
                bytes);
  return all;
}

RowGradient sum_of(std::span<const RowGradient> parts) {
  std::vector<Lookup> lookups;
  lookups.reserve(parts.size());
  for (const RowGradient& part : parts)
    lookups.push_back({.rows = part.rows, .values = part.values});
  return merged(lookups, parts[0].values.shape()[1]);
}

std::vector<ValuePtr> apply(const OpDef& op, std::span<const ValuePtr> in, Attrs attrs,
                            const ApplyMode& mode) {
  std::vector<Tensor> out;
  try {
    out = run(op, in, attrs, mode);
  } catch (const ConfigError& e) {
    throw ConfigError(explained(op, in, e.what()));
  } catch (const DataError& e) {
    throw DataError(explained(op, in, e.what()));
  }
  const bool trains = mode.records && op.grad != nullptr &&
                      std::ranges::any_of(in, [](const ValuePtr& value) { return value->trains; });
  std::shared_ptr<Origin> origin;
  if (trains) {
    origin = std::make_shared<Origin>();
    origin->op = &op;
    origin->attrs = std::move(attrs);
    origin->in.reserve(in.size());
    for (const ValuePtr& value : in)
      origin->in.push_back({value->data, value->trains ? value : nullptr, value->version});
    origin->out = out;
    origin->number = next_number();
    origin->ranks = mode.ranks;
  }
  std::vector<ValuePtr> values;
  values.reserve(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    values.push_back(std::make_shared<Value>(std::move(out[i])));
    Value& value = *values.back();
    if (!trains || !is_float(value.data.dtype())) continue;
    value.trains = true;
    value.origin = origin;
    value.output = i;
  }
  return values;
}

void keep_gradient(const ValuePtr& value) {
  if (value->origin != nullptr) value->origin->watched.push_back(value);
}

void backward(const ValuePtr& of, const std::optional<Tensor>& seed, Graph graph,
              WhenFinal when_final) {
  Sweep sweep(graph);
  sweep.tell(*of, when_final);
  sweep.start(of, seed);
  sweep.run();
}

std::vector<std::optional<Tensor>> gradients(std::span<const ValuePtr> of,
                                             std::span<const std::optional<Tensor>> seeds,
                                             std::span<const ValuePtr> to, Graph graph) {
  Sweep sweep(graph, to);
  for (size_t i = 0; i < of.size(); ++i)
    sweep.start(of[i], i < seeds.size() ? seeds[i] : std::nullopt);
  sweep.run();
  std::vector<std::optional<Tensor>> result;
  for (const ValuePtr& value : to) result.push_back(sweep.of(value));
  return result;
}

}  // namespace argosy::dynamic
