#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "argosy/base/descriptor.h"
#include "argosy/net/endpoint.h"

namespace argosy {

/// Bound but not listening. Throws IoError naming the address and, if it is taken, its owner.
Descriptor bind_to(const Endpoint& at);
/// To all addresses of the family that `like` has.
Descriptor bind_everywhere(const Endpoint& like, uint16_t port);
void start_listening(const Descriptor& socket, const Endpoint& at);

uint16_t port_of(const Descriptor& socket);
/// This end's address, without port; the peer's, with it.
std::string own_address(const Descriptor& socket);
std::string peer_address(const Descriptor& socket);
bool is_loopback(const std::string& address);

/// The next connection, non-blocking; absent if there is none.
std::optional<Descriptor> accept_one(const Descriptor& listening);
/// Non-blocking; absent if it cannot be made within this time.
std::optional<Descriptor> connect_within(const Endpoint& to, std::chrono::milliseconds time);

}  // namespace argosy
