#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/comm/backend.h"
#include "argosy/comm/peers.h"

/// The files of backends/, by name.
namespace argosy::comm {

struct GroupOptions;

/// All ranks are on one host.
std::unique_ptr<Backend> shm_backend(std::unique_ptr<Peers> peers);

enum class Order : uint8_t { any, ranks };  // of additions
std::unique_ptr<Backend> tcp_backend(std::unique_ptr<Peers> peers, Order order);

/// shm among the ranks of a host, tcp among the first ones of all hosts.
std::unique_ptr<Backend> hierarchical_backend(std::unique_ptr<Peers> peers, Order order);

/// Uses the library of a module (mpi, nccl). Throws ConfigError that says how to get the module if
/// it is missing or this process cannot use it.
std::unique_ptr<Backend> module_backend(const std::string& name, std::unique_ptr<Peers> peers,
                                        Order order, const std::string& device);

/// auto: chosen by the hosts. Throws ConfigError for an unknown name.
std::unique_ptr<Backend> make_backend(const std::string& name, std::unique_ptr<Peers> peers,
                                      Order order, const std::string& device = "");
/// connect_group without the Group around it.
std::unique_ptr<Backend> connect_backend(Env& env, const GroupOptions& options);
/// The ranks of each host; hosts and ranks in the order of the list.
std::vector<std::vector<int>> ranks_by_host(const std::vector<Endpoint>& ranks);

}  // namespace argosy::comm
