// The verbs of a server: everything but exchanges.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "argosy/base/file_sink.h"
#include "argosy/ps/server_session.h"

namespace argosy {
namespace {

constexpr size_t kMaxResult = size_t{1} << 30;  // as LinkOptions::max_frame

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A result frame: one byte that says whether it went well, then the result or the reason.
std::vector<std::byte> failed(std::string_view why) {
  std::vector<std::byte> result = bytes_of(why);
  result.insert(result.begin(), std::byte{1});
  return result;
}

std::vector<std::byte> went_well(std::vector<std::byte> result) {
  result.insert(result.begin(), std::byte{0});
  return result;
}

/// What was gathered from whom.
std::vector<std::byte> joined(const std::map<uint32_t, std::vector<std::byte>>& parts) {
  ByteBuffer out;
  out.put(static_cast<uint32_t>(parts.size()));
  for (const auto& [worker, bytes] : parts) {
    out.put(worker);
    out.put(static_cast<uint64_t>(bytes.size()));
    out.put_all(std::span<const std::byte>(bytes));
  }
  return {out.bytes().begin(), out.bytes().end()};
}

}  // namespace

void PsServer::take_control(Session& session, const InFrame& frame) {
  Control control = decode_control(frame);
  Asker asker{.worker = *session.worker_, .incarnation = 0, .id = frame.id};
  Worker& worker = workers_[asker.worker];
  {
    const Lock lock(worker.mutex);
    if (worker.link != session.link_) return;
    asker.incarnation = worker.incarnation;
    worker.heard = env_.now();
    if (frame.id <= worker.control) {  // sent again
      if (frame.id == worker.control && worker.result)
        session.link_->send(small_frame(FrameKind::result, frame.id, *worker.result));
      return;
    }
    worker.control = frame.id;
    worker.verb = control.line;
    worker.asked = env_.now();
    worker.result.reset();
  }
  const std::string& line = control.line;
  const bool takes_long = line.starts_with("save ") || line.starts_with("load ") ||
                          line.starts_with("rows ") || line.starts_with("shrink ");
  auto act = [self = shared_from_this(), asker, control = std::move(control)] {
    try {
      if (auto result = self->perform(asker, control))
        self->finish(asker, went_well(std::move(*result)));
    } catch (const std::exception& e) {
      self->finish(asker, failed(e.what()));
    }
  };
  if (takes_long && options_.background)
    options_.background(std::move(act));
  else
    act();
}

void PsServer::finish(const Asker& asker, std::vector<std::byte> result) {
  Worker& worker = workers_[asker.worker];
  const Lock lock(worker.mutex);
  if (worker.incarnation != asker.incarnation || worker.control != asker.id) return;
  if (result.size() > kMaxResult)
    result = failed(fmt::format("a result of {} bytes does not fit into a frame", result.size()));
  worker.result = std::move(result);
  if (worker.link != nullptr)
    worker.link->send(small_frame(FrameKind::result, asker.id, *worker.result));
}

/// The result; nothing if it comes later, through finish().
std::optional<std::vector<std::byte>> PsServer::perform(const Asker& asker,
                                                        const Control& control) {
  const uint32_t number = asker.worker;
  std::istringstream words(control.line);
  std::string verb, word;
  words >> verb;
  const auto count = [&] {
    uint32_t n = 0;
    words >> word;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    check<DataError>(error == std::errc() && end == word.data() + word.size(), "'", control.line,
                     "': expected a number");
    return n;
  };
  if (verb == "leave") {
    leave(number, Leaving::asked, "has left");
    return bytes_of("");
  }
  if (verb == "pause") {
    {
      const Lock group(group_);
      workers_[number].member = false;
    }
    complete_step();
    return bytes_of("");
  }
  if (verb == "gather" || verb == "join" || verb == "milestone") {
    using Kind = Gathering::Kind;
    if (verb == "gather")
      gather(Kind::gather, 0, asker, control);
    else
      gather(verb == "join" ? Kind::join : Kind::milestone, count(), asker, control);
    return std::nullopt;
  }
  if (verb == "standing") {
    {
      const Lock group(group_);
      ask_standing_.push_back(asker);
    }
    complete_gatherings();
    return std::nullopt;
  }
  if (verb == "mark") return bytes_of(mark().text());
  if (verb == "dense") return dense_state();
  if (verb == "set_dense") {
    set_dense_state(control.bytes);
    return bytes_of("");
  }
  if (verb == "save") {
    std::string generation;
    words >> generation >> std::ws;
    std::getline(words, word);
    return bytes_of(save(word, generation));
  }
  if (verb == "load") {
    words >> std::ws;
    std::getline(words, word);
    std::istringstream text(
        std::string(reinterpret_cast<const char*>(control.bytes.data()), control.bytes.size()));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    load(word, lines);
    return bytes_of("");
  }
  if (verb == "rows") {
    words >> std::ws;
    std::getline(words, word);
    return all_rows(word);
  }
  if (verb == "shrink") return bytes_of(std::to_string(shrink(count())));
  if (verb == "stats") return bytes_of(stats());
  if (verb == "stop") {
    say(fmt::format("worker {} says stop", number));
    {
      const std::scoped_lock lock(done_mutex_);
      done_ = true;
    }
    done_changed_.notify_all();
    return bytes_of("");
  }
  fail<DataError>("'", control.line,
                  "': no such verb; there are leave, pause, join, gather, milestone, standing, "
                  "dense, set_dense, mark, save, load, rows, shrink, stats and stop");
}

void PsServer::gather(Gathering::Kind kind, uint64_t number, const Asker& asker,
                      const Control& control) {
  {
    const Lock group(group_);
    Gathering& gathering = gatherings_[control.line];
    if (gathering.parts.empty()) gathering.since = env_.now();
    gathering.kind = kind;
    gathering.number = number;
    gathering.parts[asker.worker] = control.bytes;
    gathering.asked[asker.worker] = asker;
    // Whoever comes to a milestone has those before it behind, also those of a server before this.
    if (kind == Gathering::Kind::milestone && number > milestone_ + 1) {
      milestone_ = number - 1;
      milestone_bytes_.clear();
    }
  }
  complete_gatherings();
}

/// The workers that are left and have not come; of a milestone the first one as long as it may.
std::vector<uint32_t> PsServer::missing(const Gathering& gathering) const {
  std::vector<uint32_t> workers;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    const bool may_return = i == 0 && gathering.kind == Gathering::Kind::milestone;
    const bool expected = may_return ? !workers_[i].gone : !workers_[i].left;
    if (expected && !gathering.parts.contains(i)) workers.push_back(i);
  }
  return workers;
}

/// It was completed before some of its workers came.
bool PsServer::is_over(const Gathering& gathering) const {
  if (gathering.kind == Gathering::Kind::join) return gathering.number <= pass_;
  return gathering.kind == Gathering::Kind::milestone && gathering.number <= milestone_;
}

/// The answer to a gathering that is complete, or was before.
std::vector<std::byte> PsServer::settle(const Gathering& gathering) {
  if (gathering.kind == Gathering::Kind::join) {
    pass_ = std::max(pass_, gathering.number);
    for (const auto& [worker, bytes] : gathering.parts) workers_[worker].member = true;
  }
  if (gathering.kind != Gathering::Kind::milestone) return joined(gathering.parts);
  if (gathering.number < milestone_) return joined({});
  if (gathering.number == milestone_)
    return milestone_bytes_.empty() ? joined({}) : milestone_bytes_;
  milestone_ = gathering.number;
  milestone_bytes_ = joined(gathering.parts);
  for (Worker& worker : workers_) {
    const Lock lock(worker.mutex);
    worker.pushed = worker.repeats = 0;
  }
  return milestone_bytes_;
}

/// Answers those that everybody has come to who is waited for.
void PsServer::complete_gatherings() {
  std::vector<Answer> answers;
  {
    const Lock group(group_);
    for (auto at = gatherings_.begin(); at != gatherings_.end();) {
      if (!is_over(at->second) && !missing(at->second).empty()) {
        ++at;
        continue;
      }
      const std::vector<std::byte> bytes = settle(at->second);
      for (const auto& [worker, asker] : at->second.asked) answers.push_back({asker, bytes});
      gatherings_.erase(at);
      at = gatherings_.begin();  // others may be over by this one
    }
    answer_standing(answers);
  }
  for (Answer& answer : answers) finish(answer.asker, went_well(std::move(answer.bytes)));
}

/// Only when all have come: a server that was started anew hears from them where the job stands.
void PsServer::answer_standing(std::vector<Answer>& answers) {
  for (const Worker& worker : workers_)
    if (!worker.joined && !worker.left) return;
  for (const Asker& asker : std::exchange(ask_standing_, {})) {
    Worker& worker = workers_[asker.worker];
    const Lock lock(worker.mutex);
    answers.push_back({asker, bytes_of(fmt::format("{} {}", milestone_, worker.repeats))});
  }
}

void PsServer::leave(uint32_t number, Leaving how, const std::string& why) {
  {
    const Lock group(group_);
    Worker& worker = workers_[number];
    if (worker.left) return;
    worker.left = true;
    worker.dead = how == Leaving::dead;
    worker.died = env_.now();
    worker.gone = !worker.dead || !worker.joined || options_.away <= Env::Duration(0);
  }
  say(fmt::format("worker {} {}", number, why));
  complete_step();
  complete_gatherings();
  end_if_all_are_gone();
}

void PsServer::end_if_all_are_gone() {
  {
    const Lock group(group_);
    if (!std::ranges::all_of(workers_, [](const Worker& worker) { return worker.gone; })) return;
  }
  {
    const std::scoped_lock lock(done_mutex_);
    done_ = true;
  }
  done_changed_.notify_all();
}

ServerMark PsServer::mark() {
  ServerMark mark{.step = step_, .applied = {}};
  for (Worker& worker : workers_) {
    const Lock lock(worker.mutex);
    mark.applied.push_back(worker.applied);
  }
  return mark;
}

std::vector<std::byte> PsServer::dense_state() const {
  ByteBuffer out;
  out.put(step_.load());
  std::vector<float> weights, state;
  for (const auto& table : dense_) {
    weights.resize(table->spec().elements);
    state.resize(table->state_size());
    table->copy_out(weights, state);
    out.put_all(std::span<const float>(weights));
    out.put_all(std::span<const float>(state));
  }
  return {out.bytes().begin(), out.bytes().end()};
}

void PsServer::set_dense_state(std::span<const std::byte> bytes) {
  ByteSource in(bytes, "dense parameters");
  size_t floats = 0;
  for (const auto& table : dense_) floats += table->spec().elements + table->state_size();
  check<DataError>(bytes.size() == sizeof(uint64_t) + floats * sizeof(float),
                   "dense parameters: ", bytes.size(), " bytes, expected ",
                   sizeof(uint64_t) + floats * sizeof(float));
  step_ = in.get<uint64_t>();
  std::vector<float> weights, state;
  for (const auto& table : dense_) {
    weights.resize(table->spec().elements);
    state.resize(table->state_size());
    in.get_all(std::span(weights));
    in.get_all(std::span(state));
    table->copy_in(weights, state);
  }
}

/// What a worker had given to a server before this one, and what of it is gone.
std::string PsServer::losses(uint32_t number, const Hello& hello) const {
  if (!save_ || number >= save_->applied.size())
    return fmt::format(
        "worker {} had {} exchanges with a server before this one and goes on: what that one held "
        "is lost, but for what was loaded",
        number, hello.answered);
  const auto behind = [](uint64_t saved, uint64_t seen) { return seen - std::min(saved, seen); };
  const uint64_t saved = save_->applied[number];
  return fmt::format(
      "worker {} had {} exchanges with a server before this one and goes on: the save has {} of "
      "them, {} are lost; it saw step {}, the save has step {}, {} steps are lost",
      number, hello.answered, std::min(saved, hello.answered), behind(saved, hello.answered),
      hello.step, save_->step, behind(save_->step, hello.step));
}

void PsServer::goes_on_from(ServerMark mark, uint64_t milestone) {
  const Lock group(group_);
  save_ = std::move(mark);
  milestone_ = milestone;
}

std::string PsServer::save(const std::string& folder, const std::string& generation) {
  env_.make_directories(folder);
  std::string lines;
  for (const auto& table : sparse_) {
    const std::string& name = table->spec().name;
    const std::string file =
        fmt::format("{}.{}.{}-of-{}.rows", name, generation, options_.index, placement_.servers);
    FileSink out(env_, fmt::format("{}/{}", folder, file));
    table->save(out);
    out.finish();
    lines += fmt::format("{} {}\n", name, file);
  }
  say(fmt::format("saved {} tables in {}", sparse_.size(), folder));
  return lines;
}

void PsServer::load(const std::string& folder, const std::vector<std::string>& lines) {
  const auto mine = [&](Key key) { return placement_.server_of(key) == options_.index; };
  for (const auto& table : sparse_) {
    std::vector<std::vector<std::byte>> contents;
    std::vector<ByteSource> parts;
    for (const std::string& line : lines) {
      std::istringstream words(line);
      std::string name, file;
      check<DataError>(static_cast<bool>(words >> name >> file), "'", line,
                       "': expected a table and its file");
      if (name != table->spec().name) continue;
      const std::string path = fmt::format("{}/{}", folder, file);
      contents.push_back(env_.read_file(path));
      parts.emplace_back(contents.back(), path);
    }
    check<DataError>(!parts.empty(), folder, ": has no table '", table->spec().name, "'");
    table->load(parts, mine);
  }
  say(fmt::format("loaded {} tables from {}", sparse_.size(), folder));
}

std::vector<std::byte> PsServer::all_rows(const std::string& name) const {
  const auto found =
      std::ranges::find_if(sparse_, [&](const auto& table) { return table->spec().name == name; });
  check<DataError>(found != sparse_.end(), "no sparse table '", name, "'");
  const std::vector<Key> keys = (*found)->keys();
  std::vector<float> rows(keys.size() * (*found)->spec().dim);
  (*found)->pull_existing(keys, rows);
  ByteBuffer out;
  out.put(static_cast<uint64_t>(keys.size()));
  out.put_all(std::span<const Key>(keys));
  out.put_all(std::span<const float>(rows));
  return {out.bytes().begin(), out.bytes().end()};
}

size_t PsServer::shrink(uint32_t unseen) {
  size_t erased = 0;
  for (const auto& table : sparse_)
    if (table->spec().track_unseen) erased += table->shrink(unseen);
  return erased;
}

std::string PsServer::stats() {
  std::string out = fmt::format("step {}\n", step_.load());
  for (const auto& table : dense_)
    out += fmt::format("{} {}..{} of {}\n", table->spec().name, table->spec().first,
                       table->spec().first + table->spec().elements, table->spec().of);
  for (const auto& table : sparse_)
    out += fmt::format("{} {} rows\n", table->spec().name, table->size());
  return out;
}

}  // namespace argosy
