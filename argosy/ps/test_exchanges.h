#pragma once

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "argosy/base/bytes.h"
#include "argosy/net/test_links.h"
#include "argosy/net/transport.h"
#include "argosy/ps/client.h"
#include "argosy/ps/server.h"
#include "argosy/ps/wire.h"
#include "argosy/world/env.h"

/// What tests of servers and clients share: small tables, exchanges as bytes, blocking calls, and a
/// worker that goes on and on.
namespace argosy::ps {

constexpr size_t kTestDim = 2, kTestDense = 8;

/// A parameter and a table whose values are sums of what was pushed: the rule add, from zeros.
inline Placement adding_placement(uint32_t servers = 1, const std::string& rows = "rows") {
  const ParameterSpec parameter{
      .name = "w", .elements = kTestDense, .rule = "add", .learning_rate = "1"};
  const TableSpec table{
      .name = rows, .dim = kTestDim, .rule = "add", .learning_rate = "1", .track_unseen = true};
  return place({parameter}, {table}, {0}, servers, {.min_block = 4});
}

/// An exchange of one key set, as a worker could send it.
struct RawExchange {
  uint64_t sequence = 1;
  uint32_t flags = 0;
  struct List {
    uint64_t number = 0;
    std::vector<Key> keys = {};
    std::vector<float> grads = {};
  };
  std::vector<Key> pull = {};
  std::vector<List> lists = {};
  std::vector<float> dense = {};

  std::vector<std::byte> bytes() const {
    ByteBuffer out;
    out.put(ExchangeHead{sequence, flags, static_cast<uint32_t>(lists.size())});
    for (const List& list : lists) out.put(list.number);
    if ((flags & ExchangeHead::kPullRows) != 0) out.put(static_cast<uint64_t>(pull.size()));
    for (const List& list : lists) out.put(static_cast<uint64_t>(list.keys.size()));
    out.put_all(std::span<const Key>(pull));
    for (const List& list : lists)
      if ((flags & ExchangeHead::kCarriesKeys) != 0) out.put_all(std::span<const Key>(list.keys));
    out.put_all(std::span<const float>(dense));
    for (const List& list : lists) out.put_all(std::span<const float>(list.grads));
    return {out.bytes().begin(), out.bytes().end()};
  }
};

inline InFrame in_frame(FrameKind kind, std::span<const std::byte> bytes, uint64_t id = 0) {
  auto payload = std::make_shared<Buffer>();
  payload->resize(bytes.size());
  std::ranges::copy(bytes, payload->bytes().begin());
  return {.kind = kind, .id = id, .payload = std::move(payload)};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What all have brought to a meeting, one after the other.
inline std::string text_of(const verbs::Gathered& gathered) {
  std::string text;
  for (const auto& part : gathered.parts) text += text_of(part.bytes);
  return text;
}

inline std::vector<std::byte> bytes_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Lines of a server or a client, as they come.
class LogLines {
 public:
  std::function<void(const std::string&)> writer() {
    return [this](const std::string& line) { log_.change([&] { text_ += line + "\n"; }); };
  }
  /// Whether a line with all of these words comes.
  bool has(const std::vector<std::string>& words) {
    return log_.wait([&] { return holds(words); });
  }
  std::string text() {
    std::string copy;
    log_.change([&] { copy = text_; });
    return copy;
  }

 private:
  bool holds(const std::vector<std::string>& words) const {
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line);)
      if (std::ranges::all_of(
              words, [&](const std::string& word) { return line.find(word) != std::string::npos; }))
        return true;
    return false;
  }
  Log log_;
  std::string text_;
};

/// A verb, answered. Throws its error.
template <class V>
std::future<typename V::Result> ask(Client& client, const V& verb, uint32_t server = 0) {
  auto promise = std::make_shared<std::promise<typename V::Result>>();
  client.ask(server, request_of(verb),
             [promise](std::exception_ptr error, const std::vector<std::byte>& result) {
               if (error != nullptr)
                 promise->set_exception(error);
               else
                 promise->set_value(answer_of<V>(result));
             });
  return promise->get_future();
}

template <class V>
typename V::Result call(Client& client, const V& verb, uint32_t server = 0) {
  auto answer = ask(client, verb, server);
  if (answer.wait_for(kTestDeadline) != std::future_status::ready)
    throw std::runtime_error("no answer came");
  return answer.get();
}

inline std::future<void> send_exchange(Client& client, const std::shared_ptr<Exchange>& exchange) {
  auto promise = std::make_shared<std::promise<void>>();
  exchange->done = [promise](std::exception_ptr error) {
    if (error != nullptr)
      promise->set_exception(error);
    else
      promise->set_value();
  };
  client.exchange(exchange);
  return promise->get_future();
}

/// A worker that pushes ones and pulls, step after step, until it is told to stop.
class BusyWorker {
 public:
  BusyWorker(Env& env, const Placement& placement, ClientOptions options)
      : keys_{{options.worker + 1, 1000}}, transport_(tcp_transport()) {
    client_ = Client::make(env, *transport_, placement, std::move(options));
    step(nullptr);
  }
  ~BusyWorker() {
    client_->close();
    transport_.reset();
  }
  BusyWorker(const BusyWorker&) = delete;
  BusyWorker& operator=(const BusyWorker&) = delete;

  Client& client() { return *client_; }
  /// Whether a few more exchanges are answered.
  testing::AssertionResult goes_on() {
    constexpr int kMore = 5;
    int seen = 0;
    log_.change([&] { seen = answered_; });
    const bool moved = log_.wait([&] { return answered_ >= seen + kMore || !error_.empty(); });
    std::string error;
    log_.change([&] { error = error_; });
    if (moved && error.empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "the worker stands still: " << error;
  }
  /// What ended it.
  std::string error() {
    std::string copy;
    EXPECT_TRUE(log_.wait([&] { return !error_.empty(); }));
    log_.change([&] { copy = error_; });
    return copy;
  }
  int answered() {
    int copy = 0;
    log_.change([&] { copy = answered_; });
    return copy;
  }
  /// Ends with the exchange that is under way.
  void stop() {
    log_.change([&] { stopping_ = true; });
    EXPECT_TRUE(log_.wait([&] { return stopped_ || !error_.empty(); }));
  }

 private:
  void step(std::shared_ptr<KeyLists> before) {
    auto exchange = std::make_shared<Exchange>();
    if (before != nullptr) {
      exchange->pushes.push_back({std::move(before), {ones_}});
      exchange->dense.emplace_back(dense_ones_);
      exchange->ends_step = true;
    }
    exchange->lists = std::make_shared<KeyLists>(client_->placement(), keys_);
    exchange->rows.emplace_back(rows_);
    exchange->parameters.emplace_back(parameters_);
    exchange->done = [this, lists = exchange->lists](std::exception_ptr error) {
      bool go_on = false;
      log_.change([&] {
        if (error != nullptr) {
          error_ = words_of(error);
          return;
        }
        ++answered_;
        go_on = !stopping_;
        stopped_ = stopping_;
      });
      if (go_on) step(lists);
    };
    client_->exchange(std::move(exchange));
  }
  static std::string words_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const ConfigError& e) {
      return std::string("ConfigError: ") + e.what();
    } catch (const IoError& e) {
      return std::string("IoError: ") + e.what();
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  std::vector<std::vector<Key>> keys_;
  std::vector<float> ones_ = std::vector<float>(2 * kTestDim, 1.0F), rows_ = ones_;
  std::vector<float> dense_ones_ = std::vector<float>(kTestDense, 1.0F), parameters_ = dense_ones_;
  Log log_;
  int answered_ = 0;
  bool stopping_ = false, stopped_ = false;
  std::string error_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<Client> client_;
};

}  // namespace argosy::ps
