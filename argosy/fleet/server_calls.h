#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "argosy/ps/client.h"

// Blocking calls of servers, for threads that have nothing else to do. They end when the servers
// have answered, or when the client gives a server up.
namespace argosy {

/// Where a thread waits for something that another one brings about.
class Arrival {
 public:
  void arrive(std::exception_ptr error);
  void wait();  // throws the error

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool arrived_ = false;
  std::exception_ptr error_;
};

/// Sends an exchange; its `done` belongs to the arrival.
std::shared_ptr<Arrival> begin(PsClient& client, std::shared_ptr<Exchange> exchange);

std::vector<std::byte> call(PsClient& client, uint32_t server, Control control);
/// The same to every server at once; the results by server. `controls`: one, or one each.
std::vector<std::vector<std::byte>> call_all(PsClient& client,
                                             const std::vector<Control>& controls);

/// The bytes of every worker that has not left, in their order, once all have sent theirs. Every
/// worker must make the same calls in the same order, `name` says in a long wait what for.
std::vector<std::vector<std::byte>> gather(PsClient& client, const std::string& name,
                                           std::span<const std::byte> mine);
void barrier(PsClient& client, const std::string& name);

/// A gather at a place that all workers come to once, in the order of the numbers, from 1 on. One
/// that is over, for a worker that was started again, is answered at once: the last one with its
/// parts, those before it with none.
std::vector<std::vector<std::byte>> milestone(PsClient& client, uint32_t number,
                                              const std::string& name,
                                              std::span<const std::byte> mine);
/// Where the job stands, for a worker that was started again.
struct Standing {
  uint32_t milestone = 0;  // the last one that is over; 0: none
  uint64_t pushes = 0;     // the most that an earlier process of this worker has made since
};
Standing standing(PsClient& client);

std::string text_of(std::span<const std::byte> bytes);

}  // namespace argosy
