#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/comm/meeting_place.h"
#include "argosy/net/endpoint.h"

namespace argosy {

enum class RoleKind : uint8_t {
  local,
  worker,  // of a job with servers
  server,
  rank,  // of a job without servers, whose ranks train together
};

/// The part of this process in its job. Built once in main() and passed down; never a global.
struct Role {
  RoleKind kind = RoleKind::local;
  int index = 0;                       // within its kind
  std::vector<Endpoint> workers = {};  // empty where only their number is known
  std::vector<Endpoint> servers = {};  // the same list in the same order in every process
  int worker_num = 1;                  // as declared, also where their addresses are unknown
  std::optional<int> listen_fd = {};   // its listening socket, if the launcher made it
  std::string job = "default";         // processes of another job are turned away
  std::optional<comm::MeetingPlace> meeting = {};  // for ranks whose addresses are not listed
  std::string backend = "auto";                    // of a rank: how data travel, as in GroupOptions
  std::string device = {};                         // of a rank: the number of its card; "": none
  int restarts = 0;         // how often its launcher has started this process again
  std::string launch = {};  // which run of its launcher that is; "": nobody says
  bool resume = false;  // the job goes on from the journals of an earlier run, if there are some
  int away = 0;         // seconds for which the others wait for a process that may be started again
  std::string notes = {};  // folder of notes for this process's successor; "": none
  /// Of servers: none, journal or fsync, "" if nobody says; and the folder of their journals, ""
  /// for `notes`.
  std::string durability = {}, log_path = {};

  /// Worker 0 and a process without a job: the one that prints and saves.
  bool first_worker() const { return !is_server() && index == 0; }
  bool is_server() const { return kind == RoleKind::server; }
  bool is_rank() const { return kind == RoleKind::rank; }
  bool is_worker() const { return kind != RoleKind::server; }  // a local process works as well
  /// This process's entry in `servers` or `workers`; absent if unknown.
  std::optional<Endpoint> current_endpoint() const;
  /// "server 1 of 2 at 10.0.0.2:6170, 4 workers", "worker 0 of 4, 2 servers",
  /// "rank 1 of 2 at 10.0.0.2:6070, job 'night'", "local".
  std::string text() const;
};

/// A variable's value; absent if it is not set.
using Getenv = std::function<std::optional<std::string>(std::string_view)>;
Getenv process_environment();

/// The only place that knows the names of environment variables: those fleetrun sets
/// (PADDLE_PSERVERS_IP_PORT_LIST and so on) and those of earlier releases. Empty values count as
/// unset. Without a list of servers: a rank if PADDLE_TRAINER_ENDPOINTS lists several or
/// PADDLE_GLOO_RENDEZVOUS says where they meet, else local. Throws ConfigError naming the variable,
/// its value and what was expected.
Role role_from_env(const Getenv& get);

/// A role from a program instead of the environment. Throws ConfigError if it is impossible.
Role user_defined_role(RoleKind kind, int index, std::vector<Endpoint> workers,
                       std::vector<Endpoint> servers);
Role user_defined_role(RoleKind kind, int index, int worker_num, std::vector<Endpoint> servers);

/// A role given by a program. If the launcher gave the same one, adds what it handed down: a
/// server's listening socket, the number of restarts.
Role with_handed_down(Role said, const Getenv& get);

/// The files of one of `count` workers: contiguous, the first (files % count) take one more.
std::vector<std::string> file_shard(std::span<const std::string> files, int index, int count);

}  // namespace argosy
