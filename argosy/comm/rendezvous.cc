#include "argosy/comm/rendezvous.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <sstream>

#include "argosy/base/error.h"
#include "argosy/base/reminder.h"
#include "argosy/base/thread.h"
#include "argosy/net/sockets.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;      // between looks at the store
constexpr auto kConnect = 500ms;  // to find the address by which this machine reaches others
constexpr const char* kFirst = "first";
constexpr const char* kList = "list";
constexpr auto kLinger = 500ms;  // for the others to read why rank 0 stops
// Why rank 0 stops, in place of the list.
constexpr const char* kDisagree = "disagree";
constexpr const char* kMissing = "missing";

std::string name_of(int rank) { return "rank." + std::to_string(rank); }

/// The first IPv4 address that others may reach; loopback if there is none.
std::string address_of_this_machine() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return "127.0.0.1";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const bool up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ifa_addr, sizeof(sockaddr_in), text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      return text.data();
  }
  return "127.0.0.1";
}

}  // namespace

Rendezvous::Rendezvous(Env& env, MeetingPlace place, int rank, std::string job)
    : env_(env),
      place_(std::move(place)),
      rank_(rank),
      job_(std::move(job)),
      nonce_(fmt::format("{:016x}", env.random())) {
  check<ConfigError>(rank_ >= 0 && rank_ < place_.ranks, "rank ", rank_, " of ", place_.ranks,
                     ", expected 0 to ", place_.ranks - 1);
  if (!place_.folder.empty()) {
    store_ = file_store(env, place_.folder, job_);
    return;
  }
  check<ConfigError>(place_.http.has_value(), "ranks have neither a folder nor a server to meet");
  if (rank_ == 0) server_ = std::make_unique<HttpStoreServer>(*place_.http);
  store_ = http_store(*place_.http, job_);
}

Rendezvous::~Rendezvous() {
  if (rank_ != 0 || all_.empty() || server_ != nullptr) return;
  try {
    for (int rank = 0; rank < place_.ranks; ++rank) store_->remove(name_of(rank));
    for (const char* name : {kFirst, kList}) store_->remove(name);
  } catch (const Error&) {  // what stays is of no harm: it has another number
  }
}

std::string Rendezvous::own_host() const {
  if (!place_.host.empty()) return place_.host;
  if (server_ != nullptr) return place_.http->host;
  if (place_.http)
    if (const auto socket = connect_within(*place_.http, kConnect)) return own_address(*socket);
  return address_of_this_machine();
}

std::vector<Endpoint> Rendezvous::meet(const Endpoint& own, const Wait& wait) {
  const Env::Time until = env_.now() + wait.within;
  Reminder reminder(env_.now(), wait.patience);
  if (rank_ == 0) {
    first_ = nonce_;
    store_->put(kFirst, first_);
    store_->put(name_of(0), fmt::format("{} {} {} {}", first_, nonce_, place_.ranks, own.text()));
  }
  while (true) {
    rank_ == 0 ? collect() : follow(own);
    if (!all_.empty()) return all_;
    if (env_.now() >= until) name_missing(wait.within);
    if (wait.log && reminder.due(env_.now()))
      wait.log(fmt::format("rank {} of {} waits at {} for {}", rank_, place_.ranks, store_->place(),
                           missing()));
    sleep_for(kLook);
  }
}

std::optional<Rendezvous::Entry> Rendezvous::entry_of(int rank) const {
  const auto text = store_->find(name_of(rank));
  if (!text) return std::nullopt;
  Entry entry;
  std::istringstream words(*text);
  words >> entry.first >> entry.nonce >> entry.ranks >> entry.at;
  if (words.fail() || entry.first != first_) return std::nullopt;  // an earlier job's
  return entry;
}

bool Rendezvous::is_here(int rank) const {
  return rank == 0 ? !first_.empty() : entry_of(rank).has_value();
}

/// Rank 0: tells everybody the list when all have come.
void Rendezvous::collect() {
  std::string list = first_;
  std::vector<Endpoint> all;
  for (int rank = 0; rank < place_.ranks; ++rank) {
    const auto entry = entry_of(rank);
    if (!entry) return;
    if (entry->ranks != place_.ranks)
      fail<ConfigError>(tell_all(
          kDisagree,
          fmt::format("rank {} of {} ({}) wants to join rank 0 of {}: ranks must agree about "
                      "their number",
                      rank, entry->ranks, entry->at, place_.ranks)));
    list += fmt::format(" {} {}", entry->nonce, entry->at);
    all.push_back(parse_endpoint(entry->at));
  }
  store_->put(kList, list);
  all_ = std::move(all);
}

/// Rank 0: the reason why it stops.
std::string Rendezvous::tell_all(const char* what, const std::string& reason) const {
  store_->put(kList, fmt::format("{} {} {}", first_, what, reason));
  sleep_for(kLinger);
  return reason;
}

/// Another rank: answers to rank 0's number, a new one as well, and looks for the list.
void Rendezvous::follow(const Endpoint& own) {
  const auto first = store_->find(kFirst);
  if (!first || first->empty()) return;
  const std::string text = fmt::format("{} {} {} {}", *first, nonce_, place_.ranks, own.text());
  if (*first != first_ && !store_->put(name_of(rank_), text)) return;
  first_ = *first;
  const auto list = store_->find(kList);
  if (list && list->starts_with(first_ + " ")) take_list(*list);
}

void Rendezvous::take_list(const std::string& list) {
  std::istringstream words(list.substr(first_.size() + 1));
  std::vector<Endpoint> all;
  std::string nonce, at;
  while (words >> nonce >> at) {
    if (nonce == kDisagree || nonce == kMissing) {
      std::string rest;
      std::getline(words, rest);
      check<IoError>(nonce != kMissing, at, rest);
      fail<ConfigError>(at, rest);
    }
    if (static_cast<int>(all.size()) == rank_)
      check<ConfigError>(nonce == nonce_, "rank ", rank_, " of job '", job_,
                         "' is there already, at ", at, "; another one is process ", ::getpid());
    all.push_back(parse_endpoint(at));
  }
  check<ConfigError>(static_cast<int>(all.size()) == place_.ranks, "rank ", rank_, " of ",
                     place_.ranks, " wants to join rank 0 of ", all.size(),
                     ": ranks must agree about their number");
  all_ = std::move(all);
}

std::string Rendezvous::missing() const {
  std::string names;
  for (int rank = 0; rank < place_.ranks; ++rank)
    if (rank != rank_ && !is_here(rank))
      names += fmt::format("{}rank {}", names.empty() ? "" : ", ", rank);
  return names.empty() ? "rank 0's list" : names;
}

void Rendezvous::name_missing(Env::Duration within) const {
  const std::string reason = fmt::format(
      "{}: not there within {:g} s; rank {} of {} of job '{}' waited at {}", missing(),
      std::chrono::duration<double>(within).count(), rank_, place_.ranks, job_, store_->place());
  fail<IoError>(rank_ == 0 ? tell_all(kMissing, reason) : reason);
}

}  // namespace argosy::comm
