#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace argosy::launched {

/// Machines of a private network, 10.0.0.1 and so on: network namespaces around a switch, which is
/// a bridge in one more of them. Nothing of it is visible outside; the destructor removes it.
class Hosts {
 public:
  explicit Hosts(int count) : count_(count) {
    try {
      build();
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Hosts() { remove(); }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// Why there can be none here; "" where they can.
  static std::string obstacle() {
    if (std::system("command -v ip >/dev/null") != 0) return "there is no program ip (iproute2)";
    const std::string probe = prefix() + "probe";
    std::string failed;
    for (const std::string& command :
         {"ip netns add " + probe, "ip -n " + probe + " link add name middle type bridge",
          "ip -n " + probe + " link add name port type veth peer name eth0"})
      if (failed.empty() && !quiet(command)) failed = command;
    quiet("ip netns del " + probe);
    return failed.empty() ? "" : "network namespaces are not permitted here: " + failed;
  }

  static std::string address(int host) { return fmt::format("10.0.0.{}", host + 1); }
  /// Command prefix to run on a host.
  std::string on(int host) const { return "ip netns exec " + name(host); }
  /// Like pulling the plug: neither side is told.
  void cut(int host) const {
    must(fmt::format("ip -n {} link set port{} down", switch_name(), host));
  }
  void mend(int host) const {
    must(fmt::format("ip -n {} link set port{} up", switch_name(), host));
  }

 private:
  static std::string prefix() { return fmt::format("argosy-{}-", ::getpid()); }
  static std::string name(int host) { return prefix() + std::to_string(host); }
  static std::string switch_name() { return prefix() + "switch"; }

  static bool quiet(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  static void must(const std::string& command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }

  void build() const {
    must("ip netns add " + switch_name());
    must(fmt::format("ip -n {} link add name middle type bridge", switch_name()));
    must(fmt::format("ip -n {} link set middle up", switch_name()));
    for (int host = 0; host < count_; ++host) {
      must("ip netns add " + name(host));
      must(fmt::format("ip -n {} link add name port{} type veth peer name eth0 netns {}",
                       switch_name(), host, name(host)));
      must(fmt::format("ip -n {} link set port{} master middle up", switch_name(), host));
      must(fmt::format("ip -n {} addr add {}/24 dev eth0", name(host), address(host)));
      must(fmt::format("ip -n {} link set eth0 up", name(host)));
      must(fmt::format("ip -n {} link set lo up", name(host)));
    }
  }
  void remove() const {
    for (int host = 0; host < count_; ++host) quiet("ip netns del " + name(host));
    quiet("ip netns del " + switch_name());
  }

  int count_;
};

}  // namespace argosy::launched
