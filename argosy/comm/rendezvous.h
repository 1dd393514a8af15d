#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/comm/http_store_server.h"
#include "argosy/comm/meeting_place.h"
#include "argosy/comm/store.h"

namespace argosy::comm {

/// One rank at a meeting place. Rank 0 draws a number that every rank must repeat, so that entries
/// left by an earlier job are not taken for this one's.
class Rendezvous {
 public:
  /// Throws IoError where rank 0 cannot serve.
  Rendezvous(Env& env, MeetingPlace place, int rank, std::string job);
  ~Rendezvous();  // rank 0 tidies up: the others must have the list by then
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// This rank's address, without port.
  std::string own_host() const;
  struct Wait {
    Env::Duration within, patience;  // waits longer than `patience` are logged
    std::function<void(const std::string&)> log = {};
  };
  /// Publishes this rank's address and returns all ranks', by rank. Throws IoError naming ranks
  /// that do not come in time, and ConfigError if ranks disagree on their number or one comes
  /// twice.
  std::vector<Endpoint> meet(const Endpoint& own, const Wait& wait);

 private:
  struct Entry {
    std::string first, nonce;  // rank 0's number and the rank's own
    int ranks = 0;
    std::string at;
  };

  std::optional<Entry> entry_of(int rank) const;
  bool is_here(int rank) const;
  void collect();
  std::string tell_all(const char* what, const std::string& reason) const;
  void follow(const Endpoint& own);
  void take_list(const std::string& list);
  std::string missing() const;
  [[noreturn]] void name_missing(Env::Duration within) const;

  Env& env_;
  const MeetingPlace place_;
  const int rank_;
  const std::string job_, nonce_;
  std::unique_ptr<HttpStoreServer> server_;
  std::unique_ptr<Store> store_;
  std::string first_;  // rank 0's number that this rank has answered to
  std::vector<Endpoint> all_;
};

}  // namespace argosy::comm
