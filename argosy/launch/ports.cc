#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "argosy/base/error.h"
#include "argosy/launch/launcher.h"
#include "argosy/net/sockets.h"

namespace argosy::launch {

bool listens(const Job& job, const Member& member) {
  return member.kind != ProcessKind::worker || job.mode == Mode::collective;
}

Reservation reserve_ports(Job job) {
  std::vector<Descriptor> sockets(job.members.size());
  std::vector<Descriptor> held;  // until all are known
  for (size_t index = 0; index < sockets.size(); ++index) {
    Member& member = job.members[index];
    if (!job.is_here(member)) continue;
    const bool listening = listens(job, member);
    if (!listening && member.at.port != 0) continue;
    // If the meeting determines addresses, this machine's own is not known yet.
    Descriptor socket =
        member.at.host.empty() ? bind_everywhere(job.meeting->at, 0) : bind_to(member.at);
    member.at.port = port_of(socket);
    if (listening) start_listening(socket, member.at);
    (listening ? sockets[index] : held.emplace_back()) = std::move(socket);
  }
  if (job.http && job.http->port == 0 && !job.http->host.empty()) {
    held.push_back(bind_to(*job.http));
    job.http->port = port_of(held.back());
  }
  return {std::move(job), std::move(sockets)};
}

}  // namespace argosy::launch
