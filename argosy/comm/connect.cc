#include <fcntl.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/comm/backends.h"
#include "argosy/comm/group.h"
#include "argosy/comm/rendezvous.h"
#include "argosy/net/sockets.h"

namespace argosy::comm {
namespace {

/// Those of the meeting place, and a socket of our own that listens there.
std::unique_ptr<Rendezvous> find_ranks(Env& env, GroupOptions& options) {
  auto rendezvous = std::make_unique<Rendezvous>(env, *options.meeting, options.rank, options.job);
  Endpoint own{rendezvous->own_host(), 0};
  Descriptor socket = bind_to(own);
  start_listening(socket, own);
  own.port = port_of(socket);
  options.ranks = rendezvous->meet(own, {options.join_within, options.patience, options.log});
  options.listen_fd = socket.release();
  return rendezvous;
}

Descriptor listening_socket(const GroupOptions& options) {
  if (options.listen_fd) {
    Descriptor socket(*options.listen_fd);
    ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
    return socket;
  }
  const Endpoint& at = options.ranks[static_cast<size_t>(options.rank)];
  Descriptor socket = bind_to(at);
  start_listening(socket, at);
  return socket;
}

}  // namespace

std::vector<std::vector<int>> ranks_by_host(const std::vector<Endpoint>& ranks) {
  std::vector<std::vector<int>> hosts;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const auto host_of = [&](int each) { return ranks[static_cast<size_t>(each)].host; };
    const auto host = std::ranges::find_if(
        hosts, [&](const auto& known) { return host_of(known.front()) == host_of(rank); });
    if (host == hosts.end())
      hosts.push_back({rank});
    else
      host->push_back(rank);
  }
  return hosts;
}

std::unique_ptr<Backend> make_backend(const std::string& name, std::unique_ptr<Peers> peers,
                                      Order order, const std::string& device) {
  if (name == "mpi" || name == "nccl") return module_backend(name, std::move(peers), order, device);
  const size_t hosts = ranks_by_host(peers->options().ranks).size();
  const auto ranks = static_cast<size_t>(peers->size());
  const bool any = name == "auto" || name == "hierarchical";
  if (name == "shm" || (any && hosts == 1)) {
    check<ConfigError>(hosts == 1, "backend shm: the ranks are on ", hosts, " hosts, expected one");
    return shm_backend(std::move(peers));
  }
  if (name == "tcp" || (any && hosts == ranks)) return tcp_backend(std::move(peers), order);
  check<ConfigError>(any, "backend '", name,
                     "', expected auto, shm, tcp, hierarchical, mpi or nccl");
  return hierarchical_backend(std::move(peers), order);
}

std::unique_ptr<Backend> connect_backend(Env& env, const GroupOptions& wanted) {
  GroupOptions options = wanted;
  std::unique_ptr<Rendezvous> rendezvous;  // until all are connected
  if (options.ranks.empty() && options.meeting) rendezvous = find_ranks(env, options);
  const auto ranks = static_cast<int>(options.ranks.size());
  check<ConfigError>(options.rank >= 0 && options.rank < ranks, "rank ", options.rank, " of ",
                     ranks, " endpoints, expected 0 to ", ranks - 1);
  auto listener = std::make_shared<RankListener>(listening_socket(options));
  auto peers = std::make_unique<Peers>(env,
                                       PeersOptions{.rank = options.rank,
                                                    .ranks = options.ranks,
                                                    .job = options.job,
                                                    .join_within = options.join_within,
                                                    .deadline = options.deadline,
                                                    .patience = options.patience,
                                                    .quiet = options.quiet,
                                                    .log = options.log},
                                       std::move(listener));
  return make_backend(options.backend, std::move(peers),
                      options.deterministic ? Order::ranks : Order::any, options.device);
}

std::unique_ptr<Group> connect_group(Env& env, const GroupOptions& options) {
  return std::make_unique<Group>(connect_backend(env, options));
}

}  // namespace argosy::comm
