#pragma once

#include <memory>
#include <optional>
#include <string>

#include "argosy/base/env.h"
#include "argosy/net/endpoint.h"

namespace argosy::comm {

/// Texts under names that all ranks of a job can read and write. Not for several threads at once.
class Store {
 public:
  virtual ~Store() = default;
  /// Also empty while the store itself does not exist yet.
  virtual std::optional<std::string> find(const std::string& name) = 0;
  /// False while the store does not exist yet.
  virtual bool put(const std::string& name, const std::string& text) = 0;
  virtual void remove(const std::string& name) = 0;
  /// Its location, for messages.
  virtual std::string place() const = 0;
};

/// Files in a folder of that job below `folder`, which all hosts see.
std::unique_ptr<Store> file_store(Env& env, const std::string& folder, const std::string& job);

/// GET, PUT and DELETE of http://HOST:PORT/JOB/NAME, as an HttpStoreServer answers them.
std::unique_ptr<Store> http_store(const Endpoint& at, const std::string& job);

/// Escapes a job's or a name's text as part of a path; keeps letters, digits, '.', '-' and '_'.
std::string path_part(const std::string& text);

}  // namespace argosy::comm
