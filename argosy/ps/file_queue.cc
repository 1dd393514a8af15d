#include "argosy/ps/file_queue.h"

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::ps {

/// Begins a later pass; false: this one is over.
bool FileQueue::enter(const Pass& pass) {
  check<DataError>(pass.files <= kMaxFiles, pass.files,
                   " files to be shared out, expected at most ", kMaxFiles);
  const auto order = std::pair(pass.epoch, pass.number) <=> std::pair(now_.epoch, now_.number);
  if (order < 0) return false;
  check<DataError>(pass.epoch > now_.epoch || pass.files == now_.files, "a worker sees ",
                   pass.files, " files where others see ", now_.files,
                   ": files that are shared out must be the same for every worker");
  if (order == 0) return true;
  if (pass.epoch > now_.epoch) files_.assign(pass.files, State::free);
  std::ranges::replace(files_, State::taken, State::free);
  given_.clear();
  now_ = pass;
  ++version_;
  return true;
}

/// Contiguous; the first (files % workers) workers have one more.
FileQueue::Share FileQueue::share(uint32_t worker) const {
  const uint32_t each = now_.files / workers_, more = now_.files % workers_;
  const uint32_t begin = worker * each + std::min(worker, more);
  return {begin, begin + each + (worker < more ? 1 : 0)};
}

std::optional<uint32_t> FileQueue::free_file(const Lane& lane, Stealing stealing) const {
  const Share own = share(lane.worker);
  for (uint32_t file = own.begin + lane.lane; file < own.end; file += lane.lanes)
    if (files_[file] == State::free) return file;
  // Behind the first pass there is only what nobody came to take.
  if (stealing == Stealing::off && now_.number == 0) return std::nullopt;
  const auto free_of = [&](const Share& of) {
    return std::count(files_.begin() + of.begin, files_.begin() + of.end, State::free);
  };
  Share longest{};
  for (uint32_t other = 0; other < workers_; ++other)
    if (free_of(share(other)) > free_of(longest)) longest = share(other);
  // From the end: the owner comes from the other side.
  for (uint32_t file = longest.end; file-- > longest.begin;)
    if (files_[file] == State::free) return file;
  return std::nullopt;
}

std::optional<uint32_t> FileQueue::take(const Lane& lane, const Pass& pass,
                                        std::span<const uint32_t> taken, Stealing stealing) {
  check<DataError>(lane.lane < lane.lanes && lane.lanes <= kMaxLanes, "lane ", lane.lane, " of ",
                   lane.lanes, ", expected at most ", kMaxLanes);
  if (!enter(pass)) return std::nullopt;
  Given& given = given_[lane];
  for (size_t i = given.files.size(); i < taken.size(); ++i) {
    check<DataError>(taken[i] < files_.size(), "file ", taken[i], " of ", files_.size());
    given.files.push_back(taken[i]);
    ++version_;
    if (files_[taken[i]] == State::free) files_[taken[i]] = State::taken;
  }
  if (given.files.size() > taken.size()) return given.files[taken.size()];
  const auto file = given.at_end ? std::nullopt : free_file(lane, stealing);
  given.at_end = !file;
  if (!file) return std::nullopt;
  files_[*file] = State::taken;
  given.files.push_back(*file);
  ++version_;
  return file;
}

std::vector<uint32_t> FileQueue::trained(const Pass& pass, std::span<const uint32_t> numbers) {
  enter(pass);
  if (pass.epoch < now_.epoch) return {};
  for (const uint32_t file : numbers) {
    check<DataError>(file < files_.size(), "file ", file, " of ", files_.size());
    if (std::exchange(files_[file], State::trained) != State::trained) ++version_;
  }
  std::vector<uint32_t> all;
  for (uint32_t file = 0; file < files_.size(); ++file)
    if (files_[file] == State::trained) all.push_back(file);
  return all;
}

PastFiles FileQueue::past() const {
  PastFiles past{.epoch = now_.epoch, .pass = now_.number, .count = now_.files};
  for (uint32_t file = 0; file < files_.size(); ++file)
    if (files_[file] == State::trained) past.trained.push_back(file);
  for (const auto& [lane, given] : given_)
    past.lanes.push_back({lane.worker, lane.lane, lane.lanes, given.files});
  return past;
}

void FileQueue::recover(const PastFiles& past) {
  enter({past.epoch, past.pass, past.count});
  for (const PastFiles::Lane& lane : past.lanes) {
    given_[{lane.worker, lane.lane, lane.lanes}].files = lane.files;
    for (const uint32_t file : lane.files) files_.at(file) = State::taken;
  }
  for (const uint32_t file : past.trained) files_.at(file) = State::trained;
}

}  // namespace argosy::ps
