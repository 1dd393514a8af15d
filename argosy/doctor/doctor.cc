#include "argosy/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/base/error.h"
#include "argosy/base/function_ref.h"
#include "argosy/base/isa.h"
#include "argosy/base/json.h"
#include "argosy/doctor/doctor_checks.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

const char* name(Finding::Severity severity) {
  constexpr std::array kNames = {"error", "warning", "note"};
  return kNames.at(static_cast<size_t>(severity));
}

/// A check that fails tells something about the machine as well.
void add(Findings& all, FunctionRef<Findings()> checks) {
  try {
    std::ranges::move(checks(), std::back_inserter(all));
  } catch (const IoError& e) {
    all.push_back({.severity = Finding::Severity::error,
                   .what = e.what(),
                   .why = "what this check needs, a job needs as well"});
  }
}

}  // namespace

Findings examine(const Needs& needs, const Surroundings& here) {
  constexpr auto kLookUps = 100ms;
  const auto start = std::chrono::steady_clock::now();
  Findings all;
  add(all, [&] { return check_network(needs, here, start + std::min(needs.budget, {kLookUps})); });
  add(all, [&] { return check_machine(needs, here); });
  add(all, [&] { return check_command(needs, here, start + needs.budget); });
  std::ranges::stable_sort(all, {}, &Finding::severity);
  return all;
}

bool has_errors(const Findings& findings) {
  return std::ranges::find(findings, Finding::Severity::error, &Finding::severity) !=
         findings.end();
}

std::vector<Fact> facts(const Surroundings& here) {
  std::string cores = fmt::format("{} cores", here.cores);
  if (here.group.cores && *here.group.cores < here.cores)
    cores += fmt::format(", limited to the time of {:.3g}", *here.group.cores);
  std::string memory =
      fmt::format("{} of {} available", bytes_text(here.memory_available), bytes_text(here.memory));
  if (here.group.memory_left && *here.group.memory_left < here.memory_available)
    memory += fmt::format(", the control group allows {}", bytes_text(*here.group.memory_left));
  return {{"cpu", fmt::format("{}, {}, loops for {}", here.cpu_model, cores, name(isa()))},
          {"memory", memory},
          {"system", fmt::format("Linux {}, glibc {}", here.kernel, here.libc)},
          {"host", here.host_name}};
}

std::string text(const std::vector<Fact>& facts) {
  std::string lines;
  for (const Fact& fact : facts) lines += fmt::format("{:<8}{}\n", fact.name, fact.value);
  return lines;
}

std::string text(const Findings& findings) {
  if (findings.empty()) return "nothing to complain about\n";
  std::string lines;
  for (const Finding& finding : findings) {
    lines += fmt::format("{}: {}\n  why: {}\n", name(finding.severity), finding.what, finding.why);
    if (!finding.fix.empty()) lines += fmt::format("  fix: {}\n", finding.fix);
  }
  return lines;
}

std::string json(const std::vector<Fact>& facts, const Findings& findings) {
  std::string lines = "{\"machine\": {";
  const char* comma = "";
  for (const Fact& fact : facts) {
    lines += fmt::format("{}{}: {}", comma, json_string(fact.name), json_string(fact.value));
    comma = ", ";
  }
  lines += "}, \"findings\": [";
  comma = "";
  for (const Finding& finding : findings) {
    lines += fmt::format("{}{{\"severity\": \"{}\", \"what\": {}, \"why\": {}, \"fix\": {}}}",
                         comma, name(finding.severity), json_string(finding.what),
                         json_string(finding.why), json_string(finding.fix));
    comma = ", ";
  }
  return lines + "]}\n";
}

std::string bytes_text(uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr double kStep = 1024;
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= kStep && unit + 1 < kUnits.size(); ++unit) value /= kStep;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits.at(unit));
}

}  // namespace argosy
