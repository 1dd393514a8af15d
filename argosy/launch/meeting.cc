#include "argosy/launch/meet.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/net/sockets.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = LauncherLink::Clock;
using Link = LauncherLink;

constexpr int kVersion = 1;
constexpr auto kRetry = 200ms, kTell = 5000ms;

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string seconds(Clock::duration time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

/// A launcher that came to the meeting.
struct Guest {
  explicit Guest(Descriptor socket) : link(std::move(socket)) {}

  Link link;
  std::string job = {};
  int version = 0;
  std::optional<int> rank = {};
  std::vector<int> nodes = {};  // that it is, if the lists tell
  std::vector<Member> members = {};
  bool ready = false;  // it has said all
  bool in = false;     // and was let in

  /// False for a line that a launcher would not say.
  bool take(const std::string& line) {
    std::istringstream in_line(line);
    std::string verb, text;
    in_line >> verb;
    if (verb == "launcher") return static_cast<bool>(in_line >> version);
    if (version == 0) return false;
    if (verb == "job" && in_line >> text) {
      job = from_word(text);
    } else if (verb == "rank" && in_line >> text) {
      rank = std::stoi(text);
    } else if (verb == "node" && in_line >> text) {
      nodes.push_back(std::stoi(text));
    } else if (verb == "member") {
      const auto member = member_of(line);
      if (!member) return false;
      members.push_back(*member);
    } else {
      ready = verb == "ready";
      return ready;
    }
    return true;
  }
};

void poll_all(std::vector<pollfd> ready, std::chrono::milliseconds time) {
  ::poll(ready.data(), ready.size(), static_cast<int>(time.count()));
}

/// The head's side of a meeting.
class Host {
 public:
  Host(Reservation& reserved, const std::function<void(const std::string&)>& say)
      : job_(reserved.job), meeting_(*job_.meeting), say_(say) {
    if (meeting_.offers) {
      own_ = bind_everywhere(meeting_.at, meeting_.at.port);
      start_listening(own_, meeting_.at);
    }
    listening_ = meeting_.offers ? &own_ : &reserved.sockets.front();
  }

  std::vector<Link> wait() {
    const auto start = Clock::now(), deadline = start + meeting_.within;
    auto tell = start + Link::kBeat;
    while (!complete()) {
      const auto now = Clock::now();
      if (now >= deadline) give_up();
      if (now >= tell) {
        say_("waiting for " + missing());
        tell = now + kTell;
      }
      attend(now);
    }
    return begin();
  }

 private:
  size_t expected() const { return meeting_.nodes.size(); }

  /// How many of the nodes are here, this launcher's own included.
  size_t present() const {
    size_t count = meeting_.offers ? 1 : job_.here.size();
    for (const Guest& guest : guests_)
      if (guest.in) count += meeting_.offers ? 1 : guest.nodes.size();
    return count;
  }
  bool complete() const { return present() == expected(); }

  std::string missing() const {
    if (meeting_.offers && !all_have_ranks())
      return fmt::format("{} of {} {}s", expected() - present(), expected(), what());
    std::vector<std::string> names;
    for (size_t node = 0; node < expected(); ++node)
      if (!taken(static_cast<int>(node))) names.push_back(meeting_.nodes[node]);
    return joined(names);
  }
  bool all_have_ranks() const {
    return meeting_.rank &&
           std::ranges::all_of(guests_, [](const Guest& guest) { return !guest.in || guest.rank; });
  }
  /// "node", "task"
  std::string what() const {
    return meeting_.nodes.front().substr(0, meeting_.nodes.front().find(' '));
  }
  bool taken(int node) const {
    if (meeting_.offers ? meeting_.rank == node
                        : std::ranges::find(job_.here, node) != job_.here.end())
      return true;
    return std::ranges::any_of(guests_, [node](const Guest& guest) {
      return guest.in &&
             (guest.rank == node || std::ranges::find(guest.nodes, node) != guest.nodes.end());
    });
  }

  [[noreturn]] void give_up() {
    std::string came;
    for (const Guest& guest : guests_)
      if (guest.in) came += (came.empty() ? "" : ", ") + guest.link.peer();
    const std::string text =
        fmt::format("{} did not come within {}{}", missing(), seconds(meeting_.within),
                    came.empty() ? "" : "; there were " + came);
    for (Guest& guest : guests_) guest.link.say("refused " + to_word(text));
    fail<IoError>(text);
  }

  void attend(Clock::time_point now) {
    std::vector<pollfd> ready = {{listening_->get(), POLLIN, 0}};
    for (const Guest& guest : guests_) ready.push_back({guest.link.fd(), POLLIN, 0});
    poll_all(std::move(ready), kRetry);
    while (auto socket = accept_one(*listening_)) guests_.emplace_back(std::move(*socket));
    for (Guest& guest : guests_) {
      guest.link.receive(now);
      while (auto line = guest.link.line()) take(guest, *line);
      if (guest.in) guest.link.beat(now);
      if (now - guest.link.heard() > job_.tolerance.quiet) guest.link.close();
      if (guest.link.closed() && guest.in)
        say_(fmt::format("the launcher at {} has gone again", guest.link.peer()));
    }
    std::erase_if(guests_, [](const Guest& guest) { return guest.link.closed(); });
  }

  void take(Guest& guest, const std::string& line) {
    bool sensible = false;
    try {
      sensible = !guest.in && guest.take(line);
    } catch (const std::exception&) {  // a number that is none
    }
    if (!sensible) {
      say_("turned away " + guest.link.peer() + ": it is no launcher");
      guest.link.close();
      return;
    }
    if (!guest.ready) return;
    const std::string why = objection(guest);
    guest.in = why.empty();
    if (guest.in) return;
    say_("turned away " + guest.link.peer() + ": " + why);
    guest.link.say("refused " + to_word(why));
    guest.link.close();
  }

  std::string objection(const Guest& guest) const {
    if (guest.version != kVersion)
      return fmt::format("it speaks version {}, expected {}", guest.version, kVersion);
    if (guest.job != job_.id)
      return fmt::format("it is of job '{}', this is '{}'", guest.job, job_.id);
    if (meeting_.offers) return objection_to_rank(guest);
    if (guest.nodes.empty()) return "it is none of the machines";
    for (const int node : guest.nodes) {
      if (node < 0 || static_cast<size_t>(node) >= expected())
        return "its launch line has other machines";
      if (taken(node)) return meeting_.nodes[static_cast<size_t>(node)] + " is here already";
    }
    return objection_to_members(guest);
  }
  std::string objection_to_rank(const Guest& guest) const {
    if (!guest.rank) return "";
    if (*guest.rank < 0 || static_cast<size_t>(*guest.rank) >= expected())
      return fmt::format("its rank is {}, expected 0 to {}", *guest.rank, expected() - 1);
    const bool twice =
        meeting_.rank == guest.rank || std::ranges::any_of(guests_, [&](const Guest& other) {
          return other.in && other.rank == guest.rank;
        });
    return twice ? fmt::format("rank {} is here already", *guest.rank) : "";
  }
  /// The same command line must give the same members everywhere.
  std::string objection_to_members(const Guest& guest) const {
    std::vector<Member> ours;
    for (const Member& member : job_.members)
      if (std::ranges::find(guest.nodes, member.node) != guest.nodes.end()) ours.push_back(member);
    if (ours.size() != guest.members.size())
      return fmt::format("it starts {} processes, expected {}: its launch line differs",
                         guest.members.size(), ours.size());
    for (size_t i = 0; i < ours.size(); ++i)
      if (ours[i].kind != guest.members[i].kind || ours[i].at != guest.members[i].at)
        return fmt::format("its {} is at {}, expected a {} at {}: its launch line differs",
                           name_of(guest.members[i].kind), guest.members[i].at.text(),
                           name_of(ours[i].kind), ours[i].at.text());
    return "";
  }

  /// Tells all that all are here. Those without a rank get the free ones, by address.
  std::vector<Link> begin() {
    std::erase_if(guests_, [](const Guest& guest) { return !guest.in; });
    if (meeting_.offers)
      gather_offers();
    else
      gather_cards();
    std::vector<Link> links;
    for (Guest& guest : guests_) {
      for (const int node : guest.nodes) guest.link.say(fmt::format("node {}", node));
      for (const Member& member : job_.members) guest.link.say(to_line(member));
      if (job_.http) guest.link.say("http " + to_word(job_.http->text()));
      guest.link.say("go");
      links.push_back(std::move(guest.link));
    }
    return links;
  }

  /// Every machine knows its own cards only.
  void gather_cards() {
    for (const Guest& guest : guests_) {
      auto theirs = guest.members.begin();
      for (Member& member : job_.members)
        if (std::ranges::find(guest.nodes, member.node) != guest.nodes.end())
          member.cards = (theirs++)->cards;
    }
  }

  void gather_offers() {
    std::ranges::stable_sort(guests_, {}, [](const Guest& guest) { return guest.link.peer(); });
    std::set<int> free;
    for (size_t rank = 0; rank < expected(); ++rank) free.insert(static_cast<int>(rank));
    if (meeting_.rank) free.erase(*meeting_.rank);
    for (const Guest& guest : guests_)
      if (guest.rank) free.erase(*guest.rank);
    const auto next = [&] { return free.extract(free.begin()).value(); };
    const int mine = meeting_.rank ? *meeting_.rank : next();
    const std::string here = own_host();
    std::map<int, std::vector<Member>> offers;
    for (Member& member : job_.members) member.at.host = here;
    offers[mine] = job_.members;
    for (Guest& guest : guests_) {
      guest.nodes = {guest.rank ? *guest.rank : next()};
      // A guest over loopback is on this machine, but others must be able to reach it too.
      for (Member& member : guest.members)
        if (is_loopback(member.at.host)) member.at.host = here;
      offers[guest.nodes.front()] = guest.members;
    }
    job_.members.clear();
    for (auto& [rank, members] : offers)
      for (Member& member : members) {
        member.node = rank;
        job_.members.push_back(std::move(member));
      }
    std::ranges::stable_sort(job_.members, {}, &Member::kind);
    job_.here = {mine};
    if (job_.http) job_.http->host = job_.members.front().at.host;
  }

  /// How the others see this machine.
  std::string own_host() const {
    if (const char* const pod = std::getenv("POD_IP"); pod != nullptr && *pod != '\0') return pod;
    std::string host = "127.0.0.1";
    for (const Guest& guest : guests_)
      if (is_loopback(host)) host = own_address(guest.link.socket());
    return host;
  }

  Job& job_;
  Meeting meeting_;
  const std::function<void(const std::string&)>& say_;
  Descriptor own_;
  const Descriptor* listening_ = nullptr;
  std::vector<Guest> guests_;
};

/// The others' side of a meeting.
class Visitor {
 public:
  Visitor(Reservation& reserved, const std::function<void(const std::string&)>& say)
      : job_(reserved.job), meeting_(*job_.meeting), say_(say) {}

  Link wait() {
    const auto deadline = Clock::now() + meeting_.within;
    Link link = connect(deadline);
    introduce(link);
    std::vector<Member> members;
    std::vector<int> nodes;
    auto tell = Clock::now() + Link::kBeat;
    while (true) {
      const auto now = Clock::now();
      if (now >= tell) {
        say_("waiting for others with the launcher at " + meeting_.at.text());
        tell = now + kTell;
      }
      poll_all({{link.fd(), POLLIN, 0}}, kRetry);
      link.receive(now);
      link.beat(now);
      while (auto line = link.line()) {
        if (*line == "go") return begin(std::move(link), std::move(members), std::move(nodes));
        take(*line, members, nodes);
      }
      check<IoError>(!link.closed(), "the launcher at ", meeting_.at.text(),
                     " has closed the connection before all were there");
      check<IoError>(now - link.heard() <= job_.tolerance.quiet, "the launcher at ",
                     meeting_.at.text(), " is silent for ", seconds(job_.tolerance.quiet));
    }
  }

 private:
  Link connect(Clock::time_point deadline) {
    auto tell = Clock::now() + Link::kBeat;
    while (true) {
      if (auto socket = connect_within(meeting_.at, Link::kBeat)) return Link(std::move(*socket));
      const auto now = Clock::now();
      check<IoError>(now < deadline, "no launcher answers at ", meeting_.at.text(), " for ",
                     seconds(meeting_.within), ": the machine that starts ", first_name(),
                     " did not come");
      if (now >= tell) say_("waiting for the launcher at " + meeting_.at.text());
      if (now >= tell) tell = now + kTell;
      std::this_thread::sleep_for(kRetry);
    }
  }
  std::string first_name() const {
    if (meeting_.offers) return "the meeting";
    return job_.mode == Mode::collective ? "rank 0" : "server 0";
  }

  void introduce(Link& link) {
    const char* const pod = std::getenv("POD_IP");
    const std::string host = pod != nullptr && *pod != '\0' ? pod : own_address(link.socket());
    link.say(fmt::format("launcher {}", kVersion));
    link.say("job " + to_word(job_.id));
    if (meeting_.rank) link.say(fmt::format("rank {}", *meeting_.rank));
    if (!meeting_.offers)
      for (const int node : job_.here) link.say(fmt::format("node {}", node));
    for (Member member : job_.members) {
      if (!job_.is_here(member)) continue;
      if (meeting_.offers) member.at.host = host;
      link.say(to_line(member));
    }
    link.say("ready");
  }

  void take(const std::string& line, std::vector<Member>& members, std::vector<int>& nodes) {
    std::istringstream in(line);
    std::string verb, text;
    in >> verb >> text;
    check<IoError>(verb != "refused", "the launcher at ", meeting_.at.text(), ": ",
                   from_word(text));
    const auto member = member_of(line);
    if (verb == "node")
      nodes.push_back(std::atoi(text.c_str()));
    else if (verb == "http")
      job_.http = parse_endpoint(from_word(text));
    else if (verb == "member" && member)
      members.push_back(*member);
    else
      fail<IoError>("what listens at ", meeting_.at.text(), " is no launcher");
  }

  Link begin(Link link, std::vector<Member> members, std::vector<int> nodes) {
    job_.members = std::move(members);
    job_.here = std::move(nodes);
    return link;
  }

  Job& job_;
  Meeting meeting_;
  const std::function<void(const std::string&)>& say_;
};

/// Sockets go by member, and a meeting may have renumbered those; this launcher's kept their order.
void reorder_sockets(Reservation& reserved, std::vector<Descriptor> own) {
  reserved.sockets.clear();
  reserved.sockets.resize(reserved.job.members.size());
  auto next = own.begin();
  for (size_t i = 0; i < reserved.job.members.size(); ++i)
    if (reserved.job.is_here(reserved.job.members[i]) && next != own.end())
      reserved.sockets[i] = std::move(*next++);
}

/// A meeting of one: no other launcher has to find this machine.
void settle_alone(Job& job) {
  for (Member& member : job.members) member.at.host = "127.0.0.1";
  if (job.http) job.http->host = "127.0.0.1";
}

}  // namespace

std::vector<LauncherLink> meet(Reservation& reserved,
                               const std::function<void(const std::string&)>& say) {
  Job& job = reserved.job;
  if (job.meeting->nodes.size() == 1) {
    settle_alone(job);
    return {};
  }
  const bool offers = job.meeting->offers;
  std::vector<Link> links;
  if (job.meeting->head)
    links = Host(reserved, say).wait();
  else
    links.push_back(Visitor(reserved, say).wait());
  if (offers) reorder_sockets(reserved, std::move(reserved.sockets));
  return links;
}

}  // namespace argosy::launch
