#include "argosy/fleet/server_calls.h"

#include <fmt/format.h>

#include <sstream>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"

namespace argosy {

void Arrival::arrive(std::exception_ptr error) {
  {
    const std::scoped_lock lock(mutex_);
    arrived_ = true;
    error_ = std::move(error);
  }
  changed_.notify_all();
}

void Arrival::wait() {
  // The deadline is the client's: it answers everything, if only with an error.
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return arrived_; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

std::shared_ptr<Arrival> begin(PsClient& client, std::shared_ptr<Exchange> exchange) {
  auto arrival = std::make_shared<Arrival>();
  exchange->done = [arrival](std::exception_ptr error) { arrival->arrive(std::move(error)); };
  client.exchange(std::move(exchange));
  return arrival;
}

std::vector<std::vector<std::byte>> call_all(PsClient& client,
                                             const std::vector<Control>& controls) {
  const uint32_t servers = client.placement().servers;
  struct Answer {
    Arrival arrival;
    std::vector<std::byte> result;
  };
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t server = 0; server < servers; ++server) {
    answers.push_back(std::make_shared<Answer>());
    client.control(
        server, controls[controls.size() == 1 ? 0 : server],
        [answer = answers.back()](std::exception_ptr error, std::vector<std::byte> result) {
          answer->result = std::move(result);
          answer->arrival.arrive(std::move(error));
        });
  }
  std::vector<std::vector<std::byte>> results;
  for (const auto& answer : answers) {
    answer->arrival.wait();
    results.push_back(std::move(answer->result));
  }
  return results;
}

std::vector<std::byte> call(PsClient& client, uint32_t server, Control control) {
  auto arrival = std::make_shared<Arrival>();
  auto answer = std::make_shared<std::vector<std::byte>>();
  client.control(server, std::move(control),
                 [arrival, answer](std::exception_ptr error, std::vector<std::byte> result) {
                   *answer = std::move(result);
                   arrival->arrive(std::move(error));
                 });
  arrival->wait();
  return std::move(*answer);
}

namespace {

std::vector<std::vector<std::byte>> parts_of(PsClient& client, const std::string& line,
                                             std::span<const std::byte> mine) {
  const std::vector<std::byte> joined = call(client, 0, {line, {mine.begin(), mine.end()}});
  ByteSource in(joined, line);
  std::vector<std::vector<std::byte>> parts;
  const auto count = in.get<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) {
    in.get<uint32_t>();  // the worker
    const auto bytes = in.take(in.get<uint64_t>());
    parts.emplace_back(bytes.begin(), bytes.end());
  }
  return parts;
}

}  // namespace

std::vector<std::vector<std::byte>> gather(PsClient& client, const std::string& name,
                                           std::span<const std::byte> mine) {
  return parts_of(client, "gather " + name, mine);
}

std::vector<std::vector<std::byte>> milestone(PsClient& client, uint32_t number,
                                              const std::string& name,
                                              std::span<const std::byte> mine) {
  return parts_of(client, fmt::format("milestone {} {}", number, name), mine);
}

Standing standing(PsClient& client) {
  std::istringstream words(text_of(call(client, 0, {"standing"})));
  Standing standing;
  words >> standing.milestone >> standing.pushes;
  check<DataError>(!words.fail(), "standing: '", words.str(), "', expected two numbers");
  return standing;
}

void barrier(PsClient& client, const std::string& name) { gather(client, name, {}); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace argosy
