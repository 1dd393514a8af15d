#include "argosy/graph/executor.h"

#include <algorithm>
#include <sstream>

#include "argosy/base/denormals.h"
#include "argosy/graph/device_side.h"
#include "argosy/graph/memory_plan.h"
#include "argosy/graph/run_op.h"

namespace argosy {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kNever = ~size_t{0};

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// One variable seen through the current block of a chain.
struct BlockView {
  VarId var;
  size_t scratch = kNever;  // offset in the scratch buffer; kNever: a part of the variable
  Tensor block;
};

/// Nodes that run together: one, or a chain of element-wise ones that run block by block.
struct Step {
  std::vector<size_t> nodes;
  std::vector<VarId> outputs;  // program outputs that are final after it
  int64_t chain_elements = 0;  // 0: a single node
  std::vector<BlockView> views;
};

/// Arguments of a node, as its op wants them.
struct Arguments {
  std::vector<Tensor*> in, out;
};

}  // namespace

class Executor::Compiled {
 public:
  Compiled(Program program, Options options) : program(std::move(program)), options_(options) {
    find_needed();
    types_.resize(this->program.vars.size());
    values_.resize(this->program.vars.size());
    bound_.resize(this->program.vars.size());
    is_bound_.resize(this->program.vars.size());
    is_output_.resize(this->program.vars.size());
    for (VarId id : this->program.outputs) is_output_[id.index()] = true;
    if (options_.device == kNoDevice) return;
    options_.fuse = false;
    device_ = std::make_unique<DeviceSide>(this->program, options_.device);
  }

  void bind_output(VarId id, Tensor memory) {
    check<ConfigError>(id && id.index() < program.vars.size() && is_output_[id.index()],
                       "bind_output: ", id ? program.label(id) : "%-1",
                       " is not an output of the program");
    check<ConfigError>(memory.dtype() == program.var(id).type.dtype,
                       "bind_output: ", program.label(id), " is ", program.var(id).type,
                       ", the memory ", memory.dtype(), memory.shape());
    planned_ = planned_ && is_bound_[id.index()];
    bound_[id.index()] = std::move(memory);
    is_bound_[id.index()] = true;
  }

  void run(const Feeds& feeds, OnOutput on_output, const RunSeed& seed) {
    const FlushDenormals flush;
    take_feeds(feeds);
    place_bound_outputs();
    for (Step& step : steps_) {
      if (step.chain_elements > 0) {
        run_chain(step, seed);
      } else {
        run_node(step.nodes[0], seed);
      }
      if (options_.check_nan)
        for (size_t n : step.nodes) check_nan(n);
      if (device_ != nullptr && !step.outputs.empty()) bring_back(step, !!on_output);
      if (!on_output) continue;
      for (VarId id : step.outputs) on_output(id, value(id));
    }
    if (device_ != nullptr) device_->wait();
    if (!on_output) return;
    for (VarId id : program.outputs)
      if (program.var(id).kind != VarKind::temp) on_output(id, value(id));
  }

  void prepare(const Feeds& feeds) { take_feeds(feeds); }

  const Tensor& value(VarId id) const {
    check<ConfigError>(id && is_output_[id.index()], "only outputs keep their value, ",
                       program.label(id), " is none");
    return device_ != nullptr ? device_->output(id) : values_[id.index()];
  }

  Program program;
  MemoryReport report;

 private:
  void find_needed() {
    const std::vector<bool> needed = needed_variables(program);
    for (size_t n = 0; n < program.nodes.size(); ++n)
      if (std::ranges::any_of(program.nodes[n].out, [&](VarId id) { return needed[id.index()]; }))
        live_.push_back(n);
    for (size_t i = 0; i < program.vars.size(); ++i)
      if (needed[i] && program.vars[i].kind != VarKind::temp)
        fed_.push_back({static_cast<int32_t>(i)});
  }

  void take_feeds(const Feeds& feeds) {
    bool changed = !planned_;
    if (device_ != nullptr) device_->enter();
    for (VarId id : fed_) {
      const VarDesc& desc = program.var(id);
      const auto feed = feeds.find(desc.name);
      check<ConfigError>(feed != feeds.end(), desc.at, ": ", name(desc.kind), " '", desc.name, "' ",
                         desc.type, " is not fed");
      const Tensor& value = feed->second;
      VarType& type = types_[id.index()];
      if (value.shape() != type.shape || value.dtype() != type.dtype) {
        check<ConfigError>(value.dtype() == desc.type.dtype && fits(value.shape(), desc.type.shape),
                           desc.at, ": ", name(desc.kind), " '", desc.name, "' expects ", desc.type,
                           ", got ", value.dtype(), value.shape());
        type = {value.shape(), value.dtype()};
        changed = true;
      }
      values_[id.index()] = device_ != nullptr ? device_->upload(id, value) : value;
    }
    if (changed) fit_to_shapes();
  }

  /// Infers all shapes again; replans memory only if a temporary of the arena changed.
  void fit_to_shapes() {
    bool replan = !planned_;
    planned_ = false;  // until everything below has gone well
    for (size_t n : live_) {
      const Node& node = program.nodes[n];
      input_types_.clear();
      for (VarId id : node.in) input_types_.push_back(types_[id.index()]);
      try {
        infer(*node.op, {input_types_, node.attrs, output_types_});
      } catch (const ConfigError& e) {
        fail<ConfigError>(node.at, ": ", actual_signature(node), ": ", e.what());
      }
      for (size_t i = 0; i < node.out.size(); ++i) {
        VarType& type = types_[node.out[i].index()];
        if (type == output_types_[i]) continue;
        type = output_types_[i];
        if (!is_bound_[node.out[i].index()]) replan = true;
      }
    }
    if (replan) plan();
    planned_ = true;
  }

  std::string actual_signature(const Node& node) const {
    std::ostringstream out;
    out << node.op->name << '(';
    for (size_t i = 0; i < node.in.size(); ++i)
      out << (i ? ", " : "") << types_[node.in[i].index()];
    out << ')';
    return out.str();
  }

  /// Calls f with each input of node n whose content is read.
  template <class F>
  void each_read(size_t n, F f) const {
    const Node& node = program.nodes[n];
    for (size_t i = 0; i < node.in.size(); ++i)
      if (static_cast<int>(i) != node.op->shape_of) f(node.in[i]);
  }

  int64_t numel(VarId id) const { return types_[id.index()].shape.numel(); }
  size_t bytes(VarId id) const {
    return static_cast<size_t>(numel(id)) * size_of(types_[id.index()].dtype);
  }

  void plan() {
    make_steps();
    share_storage();
    assign_arena();
    bind_arguments();
  }

  // Element-wise over one size: every input has the size of the output, so nothing broadcasts.
  bool can_chain(const Node& node) const {
    return node.op->trait == OpTrait::elementwise && node.out.size() == 1 &&
           std::ranges::all_of(node.in, [&](VarId id) { return numel(id) == numel(node.out[0]); });
  }

  void make_steps() {
    steps_.clear();
    step_of_.assign(program.vars.size(), kNever);
    for (size_t n : live_) {
      const Node& node = program.nodes[n];
      const bool chainable =
          options_.fuse && can_chain(node) && numel(node.out[0]) > options_.block;
      const bool joins =
          chainable && !steps_.empty() && steps_.back().chain_elements == numel(node.out[0]);
      if (!joins) {
        steps_.emplace_back();
        if (chainable) steps_.back().chain_elements = numel(node.out[0]);
      }
      steps_.back().nodes.push_back(n);
      for (VarId id : node.out) {
        step_of_[id.index()] = steps_.size() - 1;
        if (is_output_[id.index()]) steps_.back().outputs.push_back(id);
      }
    }
    for (Step& step : steps_)
      if (step.nodes.size() == 1) step.chain_elements = 0;
  }

  size_t root(VarId id) const {
    size_t i = id.index();
    while (root_[i] != i) i = root_[i];
    return i;
  }

  /// Finds which variables are one buffer: views of another, and results written over an input
  /// that is not needed any more. Variables used only inside a chain get no buffer at all.
  void share_storage() {
    const size_t n_vars = program.vars.size();
    root_.resize(n_vars);
    for (size_t i = 0; i < n_vars; ++i) root_[i] = i;
    last_use_.assign(n_vars, 0);  // by root, as node number + 1
    std::vector<size_t> last_node(n_vars, 0);
    for (size_t n : live_) each_read(n, [&](VarId id) { last_node[id.index()] = n + 1; });
    for (VarId id : program.outputs) last_node[id.index()] = kNever;

    for (size_t n : live_) {
      const Node& node = program.nodes[n];
      if (node.op->trait == OpTrait::view && !is_bound_[node.out[0].index()]) {
        root_[node.out[0].index()] = root(node.in[0]);
      }
    }
    for (size_t i = 0; i < n_vars; ++i) {
      size_t& use = last_use_[root({static_cast<int32_t>(i)})];
      use = std::max(use, last_node[i]);
    }
    if (options_.reuse)
      for (size_t n : live_) overwrite_input(n);
  }

  /// Lets the first result of node n take over the buffer of an input that ends here.
  void overwrite_input(size_t n) {
    const Node& node = program.nodes[n];
    if (node.op->trait != OpTrait::elementwise && node.op->trait != OpTrait::inplace) return;
    const VarId out = node.out[0];
    if (is_bound_[out.index()]) return;
    for (size_t k = node.in.size(); k-- > 0;) {
      if (static_cast<int>(k) == node.op->shape_of) continue;
      const VarId in = node.in[k];
      const size_t storage = root(in);
      const bool own = program.vars[storage].kind == VarKind::temp && !is_bound_[storage];
      const bool same_size = numel(in) == numel(out) && bytes(in) == bytes(out);
      if (!own || !same_size || last_use_[storage] != n + 1) continue;
      // Another input in the same buffer must be read at the same position.
      const bool clean = std::ranges::all_of(node.in, [&](VarId other) {
        return other == in || root(other) != storage || numel(other) == numel(in);
      });
      if (!clean) continue;
      root_[out.index()] = storage;
      last_use_[storage] = std::max(last_use_[storage], last_use_[out.index()]);
      return;
    }
  }

  void assign_arena() {
    const size_t n_vars = program.vars.size();
    // A buffer lives from the step that first writes it to the step that last reads it.
    std::vector<Lifetime> buffers;
    std::vector<size_t> buffer_of(n_vars, kNever);
    std::vector<bool> escapes(n_vars, false);  // by root: seen outside the chain that makes it
    for (size_t n : live_) {
      const Node& node = program.nodes[n];
      for (VarId id : node.out)
        if (is_output_[id.index()]) escapes[root(id)] = true;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (size_t n : steps_[s].nodes)
        each_read(n, [&](VarId id) {
          escapes[root(id)] = escapes[root(id)] || step_of_[id.index()] != s;
        });
    }

    size_t without_reuse = 0;
    const auto touch = [&](VarId id, size_t step) {
      const size_t storage = root(id);
      if (program.vars[storage].kind != VarKind::temp || is_bound_[storage]) return;
      if (in_chain(storage) && !escapes[storage]) return;
      if (buffer_of[storage] == kNever) {
        buffer_of[storage] = buffers.size();
        buffers.push_back({aligned(bytes({static_cast<int32_t>(storage)})), step, step, 0});
      }
      buffers[buffer_of[storage]].last = step;
    };
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (size_t n : steps_[s].nodes) {
        each_read(n, [&](VarId id) { touch(id, s); });
        for (VarId id : program.nodes[n].out) {
          touch(id, s);
          if (!is_bound_[id.index()]) without_reuse += aligned(bytes(id));
        }
      }
    }
    for (VarId id : program.outputs)
      if (program.var(id).kind == VarKind::temp) touch(id, steps_.size() - 1);
    if (!options_.reuse)
      for (Lifetime& buffer : buffers) buffer = {buffer.bytes, 0, steps_.size(), 0};

    const size_t arena_bytes = plan_memory(buffers);
    report = {required_memory(buffers), arena_bytes, without_reuse};
    if (arena_bytes > arena_size_) {
      arena_ = device_ != nullptr ? device_->allocate(arena_bytes) : allocate_aligned(arena_bytes);
      arena_size_ = arena_bytes;
    }
    for (size_t n : live_) {
      for (VarId id : program.nodes[n].out) {
        const size_t buffer = buffer_of[root(id)];
        const VarType& type = types_[id.index()];
        has_buffer(id) = buffer != kNever;
        // One without a buffer still has a shape, which an op may ask for.
        std::byte* data = buffer == kNever
                              ? nullptr
                              : static_cast<std::byte*>(arena_.get()) + buffers[buffer].offset;
        values_[id.index()] = Tensor::wrap(data, type.shape, type.dtype);
      }
    }
  }

  bool in_chain(size_t var) const {
    const size_t step = step_of_[var];
    return step != kNever && steps_[step].chain_elements > 0;
  }

  std::vector<bool>::reference has_buffer(VarId id) {
    has_buffer_.resize(program.vars.size());
    return has_buffer_[id.index()];
  }

  void bind_arguments() {
    arguments_.assign(program.nodes.size(), {});
    size_t scratch_bytes = 0;
    for (Step& step : steps_) {
      step.views.clear();
      if (step.chain_elements == 0) {
        const Node& node = program.nodes[step.nodes[0]];
        for (VarId id : node.in) arguments_[step.nodes[0]].in.push_back(&values_[id.index()]);
        for (VarId id : node.out) arguments_[step.nodes[0]].out.push_back(&values_[id.index()]);
        continue;
      }
      scratch_bytes = std::max(scratch_bytes, make_views(step));
    }
    if (scratch_bytes > scratch_size_) {
      scratch_ = allocate_aligned(scratch_bytes);
      scratch_size_ = scratch_bytes;
    }
  }

  /// Block views of every variable of a chain; returns the scratch memory they need.
  size_t make_views(Step& step) {
    size_t scratch = 0;
    std::vector<size_t> slot_of_root(program.vars.size(), kNever);
    for (size_t n : step.nodes) {
      const Node& node = program.nodes[n];
      for (const auto* ids : {&node.in, &node.out}) {
        for (VarId id : *ids) {
          if (std::ranges::find(step.views, id, &BlockView::var) != step.views.end()) continue;
          BlockView view{.var = id, .scratch = kNever, .block = {}};
          const size_t storage = root(id);
          const bool inside = program.vars[storage].kind == VarKind::temp && !is_bound_[storage] &&
                              !has_buffer(id) && program.var(id).kind == VarKind::temp;
          if (inside) {
            if (slot_of_root[storage] == kNever) {
              slot_of_root[storage] = scratch;
              scratch += aligned(static_cast<size_t>(options_.block) * sizeof(double));
            }
            view.scratch = slot_of_root[storage];
          }
          step.views.push_back(std::move(view));
        }
      }
    }
    const auto view_of = [&](VarId id) {
      return &std::ranges::find(step.views, id, &BlockView::var)->block;
    };
    for (size_t n : step.nodes) {
      for (VarId id : program.nodes[n].in) arguments_[n].in.push_back(view_of(id));
      for (VarId id : program.nodes[n].out) arguments_[n].out.push_back(view_of(id));
    }
    return scratch;
  }

  void place_bound_outputs() {
    for (VarId id : program.outputs) {
      if (!is_bound_[id.index()]) continue;
      const VarType& type = types_[id.index()];
      Tensor& memory = bound_[id.index()];
      check<ConfigError>(memory.numel() >= type.shape.numel(), "output ", program.label(id), " ",
                         type, " does not fit the memory bound to it, ", memory.dtype(),
                         memory.shape());
      values_[id.index()] = device_ != nullptr
                                ? device_->room(id, type)
                                : Tensor::wrap(memory.data(), type.shape, type.dtype);
    }
  }

  /// Outputs that are final after a step, from the device.
  void bring_back(const Step& step, bool wait) {
    for (VarId id : step.outputs)
      device_->download(id, values_[id.index()],
                        is_bound_[id.index()] ? bound_[id.index()] : Tensor{});
    if (wait) device_->wait();
  }

  void run_node(size_t n, const RunSeed& seed) {
    const Node& node = program.nodes[n];
    if (node.op->trait == OpTrait::view && !is_bound_[node.out[0].index()]) {
      Tensor& source = values_[node.in[0].index()];
      const VarType& type = types_[node.out[0].index()];
      values_[node.out[0].index()] = Tensor::wrap(source.data(), type.shape, type.dtype);
      return;
    }
    const RunCtx ctx{arguments_[n].in, arguments_[n].out, node.attrs, seed.for_node(n),
                     options_.ranks};
    if (device_ != nullptr) return device_->run(node, ctx);
    run_op(program, node, ctx);
  }

  void run_chain(Step& step, const RunSeed& seed) {
    for (int64_t start = 0; start < step.chain_elements; start += options_.block) {
      const Shape shape{std::min(options_.block, step.chain_elements - start)};
      for (BlockView& view : step.views) {
        const DType dtype = types_[view.var.index()].dtype;
        std::byte* data = view.scratch == kNever
                              ? values_[view.var.index()].data()
                              : static_cast<std::byte*>(scratch_.get()) + view.scratch;
        if (view.scratch == kNever && data != nullptr)
          data += static_cast<size_t>(start) * size_of(dtype);
        view.block = Tensor::wrap(data, shape, dtype);
      }
      for (size_t n : step.nodes) {
        const Node& node = program.nodes[n];
        run_op(program, node,
               {arguments_[n].in, arguments_[n].out, node.attrs, seed.for_node(n), options_.ranks});
        if (options_.check_nan) check_finite(program, node, arguments_[n].out);
      }
    }
  }

  void check_nan(size_t n) {
    const Node& node = program.nodes[n];
    if (steps_[step_of_[node.out[0].index()]].chain_elements > 0 || node.op->trait == OpTrait::view)
      return;
    if (device_ == nullptr) return check_finite(program, node, arguments_[n].out);
    std::vector<Tensor> copies = device_->look(arguments_[n].out);
    std::vector<Tensor*> outputs;
    outputs.reserve(copies.size());
    for (Tensor& copy : copies) outputs.push_back(&copy);
    check_finite(program, node, outputs);
  }

  Options options_;
  std::vector<size_t> live_;  // nodes the outputs need, in order
  std::vector<VarId> fed_;    // variables from outside that they need

  bool planned_ = false;
  std::vector<VarType> types_;  // by variable, at the shapes of the last run
  std::vector<VarType> input_types_, output_types_;
  std::vector<bool> is_output_, is_bound_, has_buffer_;
  std::vector<Tensor> bound_;
  std::vector<Step> steps_;
  std::vector<size_t> step_of_, root_, last_use_;
  std::vector<Arguments> arguments_;  // by node
  std::vector<Tensor> values_;        // by variable
  std::shared_ptr<void> arena_, scratch_;
  size_t arena_size_ = 0, scratch_size_ = 0;
  std::unique_ptr<DeviceSide> device_;  // null unless the program runs on one
};

Executor::Executor(Program program, Options options)
    : compiled_(std::make_unique<Compiled>(std::move(program), options)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

const Program& Executor::program() const { return compiled_->program; }
void Executor::bind_output(VarId output, Tensor memory) {
  compiled_->bind_output(output, std::move(memory));
}
void Executor::run(const Feeds& feeds, OnOutput on_output, RunSeed seed) {
  compiled_->run(feeds, on_output, seed);
}
void Executor::prepare(const Feeds& feeds) { compiled_->prepare(feeds); }
const Tensor& Executor::value(VarId output) const { return compiled_->value(output); }
MemoryReport Executor::memory() const { return compiled_->report; }

}  // namespace argosy
