#include "argosy/net/simulation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/world/dice.h"
#include "argosy/world/event_queue.h"
#include "argosy/world/simulated_disk.h"

namespace argosy {
namespace {

constexpr uint16_t kFirstPort = 40000;  // of those given for port 0

using Bytes = std::vector<std::byte>;

Bytes encode(const OutFrame& frame) {
  Bytes bytes(sizeof(FrameHeader));
  for (const auto& part : frame.parts) bytes.insert(bytes.end(), part.begin(), part.end());
  const auto payload = std::span(bytes).subspan(sizeof(FrameHeader));
  FrameHeader header{.kind = frame.kind,
                     .id = frame.id,
                     .length = payload.size(),
                     .payload_sum = hash64(payload),
                     .flags = FrameHeader::kSummed};
  seal(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

InFrame decode(const Bytes& bytes, uint64_t max_frame, BufferPool& pool) {
  FrameHeader header;
  check<DataError>(bytes.size() >= sizeof(header), "frame header of ", bytes.size(),
                   " bytes, expected ", sizeof(header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  check_header(header, max_frame);
  const auto payload = std::span(bytes).subspan(sizeof(header));
  check_payload(header, payload);
  InFrame frame{.kind = header.kind, .id = header.id, .payload = pool.take(payload.size())};
  std::ranges::copy(payload, frame.payload->bytes().begin());
  return frame;
}

}  // namespace

/// What happens, and everything it happens to.
class Simulation::World {
 public:
  class Host;
  class End;
  class HostEnv;

  World(uint64_t seed, const Faults& faults, const Pace& pace);
  ~World();

  Host& host(const std::string& name);
  void crash(const std::string& name, Crash what);
  Env::Duration delay();

  EventQueue events;
  Faults faults;
  LinkOptions options;
  Dice weather, entropy;  // of the network; for Env::random and the disk
  SimulatedDisk disk;
  BufferPool pool;
  std::map<uint64_t, std::shared_ptr<End>> ends;  // open ones
  const std::unique_ptr<Env> env;                 // of no host
  uint64_t last_end = 0;
  SimulatedThreads threads;

 private:
  void cut_off(Host& gone);

  std::map<std::string, std::unique_ptr<Host>> hosts_;
};

/// One side of a link.
class Simulation::World::End final : public Link, public std::enable_shared_from_this<End> {
 public:
  End(World& world, const Host& host, std::string peer)
      : world_(&world), number_(++world.last_end), host_(&host), peer_(std::move(peer)) {}

  static void join(const std::shared_ptr<End>& a, const std::shared_ptr<End>& b) {
    a->other_ = b;
    b->other_ = a;
    a->world_->ends[a->number_] = a;
    b->world_->ends[b->number_] = b;
  }

  void send(OutFrame frame) override;
  void close(std::string reason) override;
  const std::string& peer() const override { return peer_; }

  /// No events: closes.
  void start(std::shared_ptr<LinkEvents> events);
  /// The peer is gone: what is under way to it is lost.
  void reset();
  /// Its host has crashed, or the world ends: nothing is told to anybody.
  void vanish();
  bool open() const { return world_ != nullptr && !closing_; }
  const Host* host() const { return host_; }
  std::shared_ptr<End> other() const { return other_.lock(); }
  /// What is sent from now on comes after that.
  void not_before(Env::Time time) { last_arrival_ = std::max(last_arrival_, time); }

 private:
  Env::Time arrival();
  void carry(Bytes bytes, Env::Time when);
  void receive(const Bytes& bytes);
  void finish(const std::string& reason);
  void finish_soon(std::string reason, Env::Time when);

  World* world_;  // null once closed
  const uint64_t number_;
  const Host* host_;
  const std::string peer_;
  std::weak_ptr<End> other_;
  std::shared_ptr<LinkEvents> events_;
  bool closing_ = false, vanished_ = false;
  Env::Time last_arrival_{};  // at the other side
};

class Simulation::World::HostEnv final : public Env {
 public:
  HostEnv(World& world, const Host* host, std::string name)
      : world_(world), host_(host), name_(std::move(name)) {}

  Time now() override { return world_.events.now(); }
  TimerId schedule(Duration after, std::function<void()> task) override {
    return world_.events.at(now() + std::max(after, Duration(0)), host_, std::move(task));
  }
  bool cancel(TimerId timer) override { return world_.events.cancel(timer); }
  uint64_t random() override { return world_.entropy.bits(); }
  std::unique_ptr<WritableFile> create_file(const std::string& path) override {
    check_up("create", path);
    return world_.disk.create_file(path, name_);
  }
  std::unique_ptr<WritableFile> create_new_file(const std::string& path) override {
    check_up("create", path);
    return world_.disk.create_new_file(path, name_);
  }
  std::unique_ptr<ReadableFile> open_file(const std::string& path) override {
    return world_.disk.open_file(path);
  }
  bool file_exists(const std::string& path) override { return world_.disk.file_exists(path); }
  void rename_file(const std::string& from, const std::string& to) override {
    check_up("rename to", to);
    world_.disk.rename_file(from, to);
  }
  void link_file(const std::string& from, const std::string& to) override {
    check_up("link to", to);
    world_.disk.link_file(from, to, name_);
  }
  void remove_file(const std::string& path) override {
    check_up("remove", path);
    world_.disk.remove_file(path, name_);
  }
  void truncate_file(const std::string& path, uint64_t size) override {
    check_up("truncate", path);
    world_.disk.truncate_file(path, size);
  }
  void make_directories(const std::string& path) override {
    check_up("create directory", path);
    world_.disk.make_directories(path);
  }
  std::vector<std::string> list_files(const std::string& folder) override {
    return world_.disk.list_files(folder);
  }
  void sync_folder(const std::string& folder) override {
    check_up("sync", folder);
    world_.disk.sync_folder(folder);
  }
  void set_down(bool down) { down_ = down; }

 private:
  void check_up(const char* what, const std::string& path) const {
    check<IoError>(!down_, what, " ", path, ": ", name_, " has crashed");
  }

  World& world_;
  const Host* host_;
  const std::string name_;
  bool down_ = false;  // crashed, and its threads have not ended yet
};

/// A machine: its network and its Env.
class Simulation::World::Host final : public Transport {
 public:
  Host(World& world, const std::string& name)
      : world_(world), name_(name), env(world, this, name) {}

  Endpoint listen(const Endpoint& at, OnAccept on_accept) override;
  Endpoint listen_fd(int fd, OnAccept on_accept) override;
  void connect(const Endpoint& to, Env::Duration within, OnConnect on_connect) override;
  void crash();

 private:
  void arrive(Host& client, const Endpoint& to, Env::Time answer, OnConnect on_connect);

  World& world_;
  const std::string name_;
  std::map<uint16_t, std::shared_ptr<const OnAccept>> listeners_;
  uint16_t next_port_ = kFirstPort;

 public:
  HostEnv env;
};

// The world.

Simulation::World::World(uint64_t seed, const Faults& how, const Pace& pace)
    : faults(how),
      weather(seed, 1),
      entropy(seed, 2),
      env(std::make_unique<HostEnv>(*this, nullptr, std::string())),
      threads(events, seed, pace) {}

Simulation::World::~World() {
  // What is let go may still use its Env.
  threads.end_all();
  while (!ends.empty()) ends.begin()->second->vanish();
  for (const auto& host : hosts_) host.second->crash();
  events.clear();
}

Simulation::World::Host& Simulation::World::host(const std::string& name) {
  auto& host = hosts_[name];
  if (host == nullptr) host = std::make_unique<Host>(*this, name);
  return *host;
}

Env::Duration Simulation::World::delay() {
  const auto least = faults.min_delay.count(), most = std::max(faults.max_delay.count(), least);
  return Env::Duration(least) +
         Env::Duration(weather.below(static_cast<uint64_t>(most - least) + 1));
}

void Simulation::World::crash(const std::string& name, Crash what) {
  Host& gone = host(name);
  cut_off(gone);
  if (what == Crash::machine)
    disk.crash_machine(name, entropy);
  else
    disk.crash_process(name);
  // The destructors that run while its threads end must not be noticed by anybody.
  gone.env.set_down(true);
  threads.end(&gone);
  gone.env.set_down(false);
  cut_off(gone);
  threads.leave_if_ended();
}

void Simulation::World::cut_off(Host& gone) {
  gone.crash();
  events.drop(&gone);
  std::vector<std::shared_ptr<End>> lost;
  for (const auto& entry : ends)
    if (entry.second->host() == &gone) lost.push_back(entry.second);
  for (const auto& end : lost) {
    if (const auto other = end->other()) other->reset();
    end->vanish();
  }
}

// A side of a link.

Env::Time Simulation::World::End::arrival() {
  last_arrival_ = std::max(last_arrival_, world_->events.now() + world_->delay());
  return last_arrival_;
}

void Simulation::World::End::send(OutFrame frame) {
  if (!open()) return;
  Bytes bytes = encode(frame);
  Dice& weather = world_->weather;
  const Faults& faults = world_->faults;
  if (weather.hit(faults.cut)) {
    if (const auto other = this->other()) other->reset();
    return reset();
  }
  if (weather.hit(faults.drop)) return;
  if (weather.hit(faults.truncate)) bytes.resize(weather.below(bytes.size()));
  if (weather.hit(faults.flip) && !bytes.empty())
    bytes[weather.below(bytes.size())] ^= static_cast<std::byte>(1U << weather.below(8));
  const bool again = weather.hit(faults.duplicate), late = weather.hit(faults.reorder);
  // One that is late does not hold up those behind it.
  const Env::Time when =
      late ? world_->events.now() + world_->delay() + world_->delay() : arrival();
  if (again) carry(bytes, arrival());
  carry(std::move(bytes), when);
}

void Simulation::World::End::carry(Bytes bytes, Env::Time when) {
  const auto other = this->other();
  if (other == nullptr || other->world_ == nullptr) return;
  world_->events.at(when, other->host_,
                    [self = shared_from_this(), other, bytes = std::move(bytes)] {
                      if (!self->vanished_ && other->open()) other->receive(bytes);
                    });
}

void Simulation::World::End::receive(const Bytes& bytes) {
  try {
    InFrame frame = decode(bytes, world_->options.max_frame, world_->pool);
    if (const auto events = events_) events->on_frame(std::move(frame));
  } catch (const std::exception& e) {
    send(text_frame(FrameKind::error, 0, e.what()));
    close(e.what());
  }
}

void Simulation::World::End::close(std::string reason) {
  if (!open()) return;
  closing_ = true;
  const auto other = this->other();
  if (other != nullptr && other->open()) {
    world_->events.at(arrival(), other->host_, [self = shared_from_this(), other] {
      if (!self->vanished_ && other->open()) other->finish(other->peer_ + " closed the connection");
    });
  }
  finish_soon(std::move(reason), world_->events.now());
}

void Simulation::World::End::start(std::shared_ptr<LinkEvents> events) {
  events_ = std::move(events);
  if (events_ == nullptr) close("nobody listens to it");
}

void Simulation::World::End::reset() {
  if (!open()) return;
  closing_ = true;
  finish_soon("lost the connection to " + peer_ + ": Connection reset by peer",
              world_->events.now() + world_->delay());
}

void Simulation::World::End::finish_soon(std::string reason, Env::Time when) {
  world_->events.at(when, host_, [self = shared_from_this(), reason = std::move(reason)] {
    if (self->world_ != nullptr) self->finish(reason);
  });
}

void Simulation::World::End::finish(const std::string& reason) {
  closing_ = true;
  const auto self = shared_from_this();
  std::exchange(world_, nullptr)->ends.erase(number_);
  if (const auto events = std::move(events_)) events->on_close(reason);
}

void Simulation::World::End::vanish() {
  if (world_ == nullptr) return;
  vanished_ = closing_ = true;
  const auto self = shared_from_this();
  World& world = *std::exchange(world_, nullptr);
  world.ends.erase(number_);
  world.events.bury(std::move(events_));
}

// A host.

Endpoint Simulation::World::Host::listen(const Endpoint& at, OnAccept on_accept) {
  uint16_t port = at.port;
  while (port == 0 || (at.port == 0 && listeners_.contains(port))) port = next_port_++;
  Endpoint here{name_, port};
  check<IoError>(!listeners_.contains(port), "cannot listen on ", here.text(),
                 ": Address already in use");
  listeners_[port] = std::make_shared<const OnAccept>(std::move(on_accept));
  return here;
}

Endpoint Simulation::World::Host::listen_fd(int fd, OnAccept) {
  fail<IoError>("cannot listen on descriptor ", fd, ": a simulated host has none");
}

void Simulation::World::Host::connect(const Endpoint& to, Env::Duration within,
                                      OnConnect on_connect) {
  const Env::Time there = world_.events.now() + world_.delay(), back = there + world_.delay();
  if (back > world_.events.now() + within) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(within).count();
    const std::string error =
        "cannot connect to " + to.text() + ": no answer within " + std::to_string(ms) + " ms";
    world_.events.at(world_.events.now() + within, this,
                     [on_connect, error] { on_connect(nullptr, error); });
    return;
  }
  world_.events.at(there, this, [this, to, back, on_connect = std::move(on_connect)] {
    world_.host(to.host).arrive(*this, to, back, on_connect);
  });
}

/// A connect has come to this host.
void Simulation::World::Host::arrive(Host& client, const Endpoint& to, Env::Time answer,
                                     OnConnect on_connect) {
  const std::string refused = "cannot connect to " + to.text() + ": Connection refused";
  const auto found = listeners_.find(to.port);
  if (found == listeners_.end()) {
    world_.events.at(answer, &client, [on_connect, refused] { on_connect(nullptr, refused); });
    return;
  }
  const Endpoint from{client.name_, client.next_port_++};
  const auto near = std::make_shared<End>(world_, *this, from.text());
  const auto far = std::make_shared<End>(world_, client, to.text());
  End::join(near, far);
  near->not_before(answer);
  world_.events.at(answer, &client, [far, on_connect, refused] {
    if (far->open())
      far->start(on_connect(far, ""));
    else
      on_connect(nullptr, refused);
  });
  const auto on_accept = found->second;
  near->start((*on_accept)(near));
}

void Simulation::World::Host::crash() {
  for (auto& listener : listeners_) world_.events.bury(std::move(listener.second));
  listeners_.clear();
}

// The public side.

Simulation::Simulation(uint64_t seed, const Faults& faults, const Pace& pace)
    : world_(std::make_unique<World>(seed, faults, pace)) {}
Simulation::~Simulation() = default;

Env& Simulation::env() { return *world_->env; }
Transport& Simulation::host(const std::string& name) { return world_->host(name); }
Env& Simulation::host_env(const std::string& name) { return world_->host(name).env; }
void Simulation::crash(const std::string& name, Crash what) { world_->crash(name, what); }
void Simulation::set_faults(const Faults& faults) { world_->faults = faults; }
SimulatedDisk& Simulation::disk() { return world_->disk; }

bool Simulation::run_until(const std::function<bool()>& done, Env::Duration limit) {
  return world_->threads.run_until(done, limit);
}

void Simulation::start_thread(const std::string& host, const std::string& name,
                              std::function<void()> run) {
  world_->threads.start_process(host.empty() ? nullptr : &world_->host(host), name, std::move(run));
}

void Simulation::run(Env::Duration limit) {
  SimulatedThreads& threads = world_->threads;
  threads.check_may_run();
  try {
    if (threads.run_until([&] { return threads.processes() == 0; }, limit)) return;
    const auto seconds = std::chrono::duration<double>(limit).count();
    check<Error>(threads.processes() == 0, "after ", seconds, " s of simulated time ",
                 threads.waits());
  } catch (...) {
    threads.end_all();
    throw;
  }
}

}  // namespace argosy
