#include "argosy/graph/op.h"

#include <map>

#include "argosy/base/call.h"
#include "argosy/base/mutex.h"

namespace argosy {
namespace {

/// Thread safety: full. Ops are added and never removed, so references stay good.
class Registry {
 public:
  static Registry& get() {
    static Registry registry;
    return registry;
  }

  void add(OpDef op) {
    Lock lock(mutex_);
    const std::string name = op.name;
    const bool added = ops_.emplace(name, std::move(op)).second;
    check<ConfigError>(added, "op '", name, "' exists already");
  }

  const OpDef& find(std::string_view name) {
    Lock lock(mutex_);
    const auto found = ops_.find(name);
    if (found != ops_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, op] : ops_) known.push_back(key);
    const std::string near = nearest(name, known);
    fail<ConfigError>("unknown op '", name, "'",
                      near.empty() ? "" : ", did you mean " + near + "?");
  }

  std::vector<const OpDef*> all() {
    Lock lock(mutex_);
    std::vector<const OpDef*> ops;
    for (const auto& [key, op] : ops_) ops.push_back(&op);
    return ops;
  }

 private:
  Registry() {
    for (OpDef& op : builtin_ops()) {
      const std::string name = op.name;
      ops_.emplace(name, std::move(op));
    }
  }
  Mutex mutex_;
  std::map<std::string, OpDef, std::less<>> ops_ GUARDED_BY(mutex_);
};

}  // namespace

void infer(const OpDef& op, const InferCtx& ctx) {
  if (op.inputs >= 0) {
    check<ConfigError>(ctx.in.size() == static_cast<size_t>(op.inputs), "takes ", op.inputs,
                       " inputs, got ", ctx.in.size());
  } else {
    check<ConfigError>(!ctx.in.empty(), "takes one input or more, got none");
  }
  op.infer(ctx);
}

const OpDef& find_op(std::string_view name) { return Registry::get().find(name); }
std::vector<const OpDef*> all_ops() { return Registry::get().all(); }
void register_op(OpDef op) { Registry::get().add(std::move(op)); }

}  // namespace argosy
