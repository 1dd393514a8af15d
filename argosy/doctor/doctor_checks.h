#pragma once

#include <string>

#include "argosy/doctor/doctor.h"

namespace argosy {

/// The parts of examine().
Findings check_network(const Needs& needs, const Surroundings& here, Deadline look_ups);
Findings check_machine(const Needs& needs, const Surroundings& here);
Findings check_command(const Needs& needs, const Surroundings& here, Deadline deadline);

/// A program of ours: it speaks neither HTTP nor gRPC.
bool is_argosy(const std::vector<std::string>& command);

/// "1.5 GiB"
std::string bytes_text(uint64_t bytes);

}  // namespace argosy
