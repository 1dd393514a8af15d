#pragma once

#include <memory>
#include <vector>

#include "argosy/base/function_ref.h"
#include "argosy/graph/builder.h"
#include "argosy/graph/program.h"

namespace argosy {

/// Called the moment an output is final, while the rest of the program still computes. The
/// tensor is good until the next run.
using OnOutput = FunctionRef<void(VarId, const Tensor&)>;

/// Bytes of temporaries and outputs at the shapes last run. required is what any executor that
/// keeps each value from its definition to its last use must hold at the worst moment.
struct MemoryReport {
  size_t required = 0;
  size_t planned = 0;        // what this executor holds
  size_t without_reuse = 0;  // one buffer per variable
};

/// Runs a program again and again on the calling thread. The first run with some feed shapes
/// plans buffers, in-place ops and chains of element-wise ops; later runs with the same shapes
/// allocate nothing. Same bits with every option but the device. Thread safety: one thread at a
/// time.
class Executor {
 public:
  struct Options {
    bool fuse = true;   // run chains of element-wise ops block by block
    bool reuse = true;  // let variables share memory
    bool check_nan = false;
    SumOverRanks* ranks = nullptr;  // the others that run the program; outlives it
    /// Elements of a block: all temporaries of a chain together stay in the first cache level.
    int64_t block = 1024;
    /// Run on this device: feeds go there at each run, outputs come back. Ops run one by one.
    int device = kNoDevice;
  };
  static constexpr int kNoDevice = -1;

  explicit Executor(Program program) : Executor(std::move(program), Options{}) {}
  Executor(Program program, Options options);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  const Program& program() const;

  /// From now on this output is written straight into `memory`, which has its type and at least
  /// its size: a gradient into a shared arena, a result into a caller's array.
  void bind_output(VarId output, Tensor memory);

  /// Feeds hold every input, rows, param and state the outputs depend on, by name; others are
  /// ignored. Throws ConfigError naming a feed that is missing or does not fit.
  void run(const Feeds& feeds, OnOutput on_output = {}, RunSeed seed = {});

  /// Plans for the shapes of these feeds without running anything.
  void prepare(const Feeds& feeds);

  /// An output of the last run.
  const Tensor& value(VarId output) const;

  MemoryReport memory() const;

 private:
  class Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace argosy
