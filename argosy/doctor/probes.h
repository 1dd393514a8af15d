#pragma once

#include "argosy/doctor/surroundings.h"

namespace argosy {

/// The functions of this_surroundings(); they are described there.
std::vector<LookUp> look_up_names(const std::vector<std::string>& names, Deadline deadline);
std::string try_loopback();
int try_to_listen(const std::string& address, uint16_t port);
FolderState look_at_folder(const std::string& folder);
FoundProgram find_program(const std::string& name);

}  // namespace argosy
