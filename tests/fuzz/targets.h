#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace argosy::fuzz {

/// A reader of untrusted bytes. For any input it must end with a result or an argosy::Error: no
/// crash, no other exception, no undefined behaviour, no endless loop.
struct Target {
  std::function<void(std::span<const std::byte> bytes)> run;
  std::vector<std::string> seeds;  // inputs to start from
};

/// By name: parser_<name> for each text format, yaml, program, saved_model, sparse_table, pickle,
/// call, exchange, greetings, log, status.
std::map<std::string, Target> all_targets();

}  // namespace argosy::fuzz
