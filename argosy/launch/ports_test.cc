#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/launcher.h"

namespace argosy::launch {
namespace {

Job job_of(const Flags& flags) {
  Flags all = flags;
  all.command = {"train"};
  return make_job(all, {});
}

bool listens(const Descriptor& socket) {
  int accepts = 0;
  socklen_t size = sizeof(accepts);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 &&
         accepts == 1;
}

/// Whether the endpoint accepts connections.
bool answers(const Endpoint& endpoint) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

TEST(ReservePorts, ServersListenAndAllPortsDiffer) {
  const Reservation reserved = reserve_ports(job_of({.server_num = 2, .worker_num = 3}));
  ASSERT_EQ(reserved.sockets.size(), 5U);
  std::vector<Endpoint> all;
  for (size_t index = 0; index < 5; ++index) {
    const bool server = index < 2;
    EXPECT_EQ(listens(reserved.sockets[index]), server);
    EXPECT_EQ(answers(reserved.job.members[index].at), server);
    all.push_back(reserved.job.members[index].at);
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_NE(all.front().port, 0);
}

TEST(ReservePorts, NamesTheAddressThatIsTaken) {
  const Reservation first = reserve_ports(job_of({.server_num = 1, .worker_num = 1}));
  const std::string taken = first.job.members[0].at.text();
  const std::string error =
      message_of<IoError>([&] { reserve_ports(job_of({.worker_num = 1, .servers = taken})); });
  EXPECT_TRUE(error.starts_with("cannot listen on " + taken + ": it is taken by process " +
                                std::to_string(::getpid())))
      << error;
}

TEST(ReservePorts, RanksListenToo) {
  const Reservation reserved = reserve_ports(job_of({.nproc_per_node = 2}));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(listens(reserved.sockets[rank]));
    EXPECT_TRUE(answers(reserved.job.members[rank].at));
  }
}

TEST(ReservePorts, LeavesOtherMachinesAlone) {
  Job job = job_of({.servers = "127.0.0.1:0", .workers = "127.0.0.1:1"});
  job.members.push_back({.kind = ProcessKind::server, .at = {"192.0.2.1", 6170}, .node = 1});
  const Reservation reserved = reserve_ports(std::move(job));
  EXPECT_TRUE(listens(reserved.sockets[0]));
  EXPECT_EQ(reserved.sockets[2].get(), -1);
  EXPECT_EQ(reserved.job.members[2].at.port, 6170);
}

}  // namespace
}  // namespace argosy::launch
