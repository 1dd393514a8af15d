#include "argosy/modes/server_calls.h"

#include "argosy/base/error.h"

namespace argosy {

void Arrival::arrive(std::exception_ptr error) {
  {
    const Lock lock(mutex_);
    arrived_ = true;
    error_ = std::move(error);
  }
  changed_.notify_all();
}

void Arrival::wait(const SourceLoc& where) {
  // The deadline is the client's: it answers everything, if only with an error.
  const Lock lock(mutex_);
  while (!arrived_) changed_.wait(mutex_, where);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

std::shared_ptr<Arrival> begin(ps::Client& client, std::shared_ptr<ps::Exchange> exchange) {
  auto arrival = std::make_shared<Arrival>();
  exchange->done = [arrival](std::exception_ptr error) { arrival->arrive(std::move(error)); };
  client.exchange(std::move(exchange));
  return arrival;
}

std::function<std::vector<std::vector<std::byte>>()> begin_each(ps::Client& client,
                                                                std::vector<ps::Request> requests) {
  struct Answer {
    Arrival arrival;
    std::vector<std::byte> result;
  };
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t server = 0; server < requests.size(); ++server) {
    answers.push_back(std::make_shared<Answer>());
    client.ask(server, std::move(requests[server]),
               [answer = answers.back()](std::exception_ptr error, std::vector<std::byte> result) {
                 answer->result = std::move(result);
                 answer->arrival.arrive(std::move(error));
               });
  }
  return [answers = std::move(answers)] {
    std::vector<std::vector<std::byte>> results;
    for (const auto& answer : answers) {
      answer->arrival.wait();
      results.push_back(std::move(answer->result));
    }
    return results;
  };
}

std::vector<std::vector<std::byte>> ask_each(ps::Client& client,
                                             std::vector<ps::Request> requests) {
  return begin_each(client, std::move(requests))();
}

std::vector<std::byte> ask_one(ps::Client& client, uint32_t server, ps::Request request) {
  auto arrival = std::make_shared<Arrival>();
  auto answer = std::make_shared<std::vector<std::byte>>();
  client.ask(server, std::move(request),
             [arrival, answer](std::exception_ptr error, std::vector<std::byte> result) {
               *answer = std::move(result);
               arrival->arrive(std::move(error));
             });
  arrival->wait();
  return std::move(*answer);
}

namespace {

std::vector<std::vector<std::byte>> parts_of(ps::verbs::Gathered gathered) {
  std::vector<std::vector<std::byte>> parts;
  for (ps::verbs::Gathered::Part& part : gathered.parts) parts.push_back(std::move(part.bytes));
  return parts;
}

}  // namespace

std::vector<std::vector<std::byte>> gather(ps::Client& client, const std::string& series,
                                           uint64_t number, const std::string& name,
                                           std::span<const std::byte> mine) {
  return parts_of(
      call(client, 0, ps::verbs::Gather{series, number, name, {mine.begin(), mine.end()}}));
}

std::vector<std::vector<std::byte>> milestone(ps::Client& client, uint64_t number,
                                              const std::string& name,
                                              std::span<const std::byte> mine) {
  return parts_of(call(client, 0, ps::verbs::Milestone{number, name, {mine.begin(), mine.end()}}));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace argosy
