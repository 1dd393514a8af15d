#pragma once

#include "argosy/graph/builder.h"
#include "bindings.h"

namespace argosy::python {

/// A program while a script records it. Variables are known by their numbers.
class Recorder {
 public:
  int32_t variable(VarKind kind, std::string name, const std::vector<int64_t>& shape,
                   const std::string& dtype, std::string init);
  std::vector<int32_t> apply(const std::string& op, const std::vector<int32_t>& inputs,
                             const nb::dict& attrs);
  int32_t embedding(const std::string& slot, const std::string& table, int64_t dim,
                    const std::string& init, const std::string& pool,
                    std::optional<uint64_t> padding);
  void name(int32_t variable, std::string name);
  void update(int32_t state, int32_t next);

  Var var(int32_t number) { return {&builder_, {number}}; }
  Builder& builder() { return builder_; }
  const Program& program() const { return builder_.program(); }
  const VarDesc& desc(int32_t number) const { return program().var({number}); }

 private:
  Builder builder_;
};

void bind_recorder(nb::module_& module);

}  // namespace argosy::python
