#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/data/dataset.h"
#include "argosy/fleet/communicator.h"
#include "argosy/fleet/role.h"
#include "argosy/fleet/server_calls.h"
#include "argosy/net/transport.h"
#include "argosy/train/figures.h"
#include "argosy/zoo/config.h"

namespace argosy {

/// A place that every worker of a job comes to once, in the order of the numbers.
struct Milestone {
  uint32_t number = 0;
  std::string name;

  static Milestone data_are_there() { return {1, "the data are there"}; }
  static Milestone model_is_loaded() { return {2, "the model is loaded"}; }
  // Of an epoch; the first is 1.
  static Milestone begins(int epoch);  // of the first that this job trains
  static Milestone trained(int epoch);
  static Milestone saved(int epoch);
};

/// Who this process is, as the environment and the configuration say, and what it does together
/// with the other workers. Where there is no job every call is done at once. Not thread-safe.
class Job {
 public:
  /// Throws ConfigError where environment and configuration do not go together.
  Job(Env& env, const Config& config);

  const Role& role() const { return role_; }
  bool shared() const { return role_.kind != RoleKind::local; }
  bool first() const { return role_.first_worker(); }
  const Strategy& strategy() const { return strategy_; }
  /// Once connected; null where there are no servers.
  const std::shared_ptr<PsClient>& client() const { return client_; }
  /// Ranks train together, without servers.
  bool collective() const { return role_.is_rank(); }
  /// For TrainerOptions::connect; none where there is nobody to connect to.
  std::function<Wires(const Plan&)> connector();

  /// A worker that was started again asks the servers, when it is connected.
  void find_standing();
  /// As it was then: the last place that the others had left behind, 0 if none; and how many
  /// batches behind it this worker had trained before, as far as the servers can tell.
  uint32_t standing() const { return standing_.milestone; }
  uint64_t repeated_batches() const;
  bool is_over(const Milestone& at) const { return at.number <= standing_.milestone; }

  /// Returns when every worker has come here; at once where it is over.
  void barrier(const Milestone& at);
  /// The first worker's text, which is not empty, for all. Throws IoError if that worker is gone.
  std::string from_first(const Milestone& at, const std::string& text);
  /// Makes the figures of this worker those of all.
  void join(const Milestone& at, Figures& figures);
  /// The part of these files that belongs to this worker. Throws ConfigError if there is none.
  /// Ranks share the batches of all files where there are too few of them for a file each.
  std::vector<std::string> files(std::vector<std::string> all);
  /// What this process takes of the batches of its files, and how the data are dealt out in words.
  Share batches() const { return batches_; }
  std::string shares_text() const;

 private:
  bool connected() const { return client_ != nullptr || group_ != nullptr; }
  std::vector<std::vector<std::byte>> meet(const Milestone& at, std::span<const std::byte> mine);

  Env& env_;
  const Config& config_;
  Role role_;
  Strategy strategy_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<PsClient> client_;
  std::shared_ptr<Group> group_;
  Standing standing_;
  Share batches_;
};

/// Reports to a launcher how far this worker is, a few times a second, where it asks for that.
class ProgressReport {
 public:
  ProgressReport(Env& env, const Role& role);
  bool due() const { return fd_ >= 0 && env_.now() >= next_; }
  void write(const Progress& progress);

 private:
  Env& env_;
  int worker_, fd_ = -1;
  Env::Time next_;
};

/// Serves as this process' role says until all workers have left, or until SIGTERM or SIGINT. One
/// that was started again begins with the newest save of its job; throws IoError if there is none.
void run_server(Env& env, const Config& config, const Job& job, std::FILE* out);

}  // namespace argosy
