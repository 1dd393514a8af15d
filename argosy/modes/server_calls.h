#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/mutex.h"
#include "argosy/ps/client.h"

// Blocking calls to servers, for threads that have nothing else to do. They return when the servers
// have answered, and throw when the client gives a server up.
namespace argosy {

/// A one-shot event that another thread completes or fails. Thread safety: full.
class Arrival {
 public:
  void arrive(std::exception_ptr error);
  void wait(const SourceLoc& where = SourceLoc::current());  // throws the error

 private:
  Mutex mutex_;
  CondVar changed_;
  bool arrived_ GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ GUARDED_BY(mutex_);
};

/// Sends an exchange; the arrival sets its `done`.
std::shared_ptr<Arrival> begin(ps::Client& client, std::shared_ptr<ps::Exchange> exchange);

/// Sends one request to each server. The call that it returns waits for the answers and returns
/// them, once. It throws the first error.
std::function<std::vector<std::vector<std::byte>>()> begin_each(ps::Client& client,
                                                                std::vector<ps::Request> requests);
/// Sends one request to each server and returns the answers. Throws the first error.
std::vector<std::vector<std::byte>> ask_each(ps::Client& client, std::vector<ps::Request> requests);
std::vector<std::byte> ask_one(ps::Client& client, uint32_t server, ps::Request request);

template <class V>
typename V::Result call(ps::Client& client, uint32_t server, const V& verb) {
  return ps::answer_of<V>(ask_one(client, server, ps::request_of(verb)));
}
/// Sends one verb to each server concurrently; returns the answers by server.
template <class V>
std::vector<typename V::Result> call_each(ps::Client& client, const std::vector<V>& verbs) {
  std::vector<ps::Request> requests;
  requests.reserve(verbs.size());
  for (const V& verb : verbs) requests.push_back(ps::request_of(verb));
  std::vector<typename V::Result> answers;
  for (const auto& bytes : ask_each(client, std::move(requests)))
    answers.push_back(ps::answer_of<V>(bytes));
  return answers;
}
template <class V>
std::vector<typename V::Result> call_all(ps::Client& client, const V& verb) {
  return call_each(client, std::vector<V>(client.placement().servers, verb));
}

/// Meeting `number` (from 1) of a series: returns the bytes of every worker that has not left, in
/// worker order, once all have come. Every worker must come to the same meetings; `name` explains a
/// long wait.
std::vector<std::vector<std::byte>> gather(ps::Client& client, const std::string& series,
                                           uint64_t number, const std::string& name,
                                           std::span<const std::byte> mine);

/// A gather that every worker comes to once, in the order of the numbers from 1. For a restarted
/// worker, one that is over is answered at once: the last with its parts, earlier ones with none.
std::vector<std::vector<std::byte>> milestone(ps::Client& client, uint64_t number,
                                              const std::string& name,
                                              std::span<const std::byte> mine);

std::string text_of(std::span<const std::byte> bytes);

}  // namespace argosy
