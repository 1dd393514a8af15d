#include "argosy/job/job_files.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "argosy/base/error.h"
#include "argosy/base/mutex.h"
#include "argosy/job/job.h"
#include "argosy/modes/server_calls.h"

namespace argosy {
namespace {

class JobFiles final : public SharedFiles {
 public:
  JobFiles(Job& job, std::shared_ptr<ps::Client> servers, JobFilesOptions options)
      : job_(job), servers_(std::move(servers)), options_(std::move(options)) {}

  void begin_epoch() override {
    const int epoch = options_.epoch();
    enter(epoch, 0);
    trained_.clear();
    whole_ = false;
    if (job_.is_over(Milestone::passed(epoch, 0))) find_pass(epoch);
  }

  std::optional<uint32_t> take(uint32_t lane, uint32_t lanes) override {
    if (whole_) return std::nullopt;
    ps::verbs::TakeFile verb{.lane = lane, .lanes = lanes, .stealing = options_.stealing};
    {
      const Lock lock(mutex_);
      verb.pass = now_;
      verb.taken = taken_[lane];
    }
    const auto file = call(*servers_, 0, verb).file;
    if (file.empty()) return std::nullopt;
    check<DataError>(file[0] < options_.files.size(), "server 0 gave file ", file[0], " of ",
                     options_.files.size());
    const Lock lock(mutex_);
    taken_[lane].push_back(file[0]);
    return file[0];
  }

  bool begin_next_pass() override {
    if (whole_) return false;
    ps::verbs::TrainedFiles report = taken();
    const uint64_t pass = report.pass.number;
    const int epoch = static_cast<int>(report.pass.epoch);
    add(call(*servers_, 0, report).numbers);
    add(report.numbers);
    const ps::verbs::TrainedFiles known{report.pass, {trained_.begin(), trained_.end()}};
    const auto parts = job_.meet(Milestone::passed(epoch, pass), ps::encode_fields(known));
    if (parts.empty()) {  // the others did not wait
      find_pass(epoch);
      return !whole_;
    }
    for (const auto& part : parts)
      add(ps::decode_fields<ps::verbs::TrainedFiles>(part, "files of another worker").numbers);
    whole_ = trained_.size() == options_.files.size();
    if (whole_) return false;
    begin_another(epoch, pass);
    return true;
  }

  uint64_t pass() const override {
    const Lock lock(mutex_);
    return now_.number;
  }

 private:
  void enter(int epoch, uint64_t pass) {
    const Lock lock(mutex_);
    now_ = {static_cast<uint64_t>(epoch), pass, static_cast<uint32_t>(options_.files.size())};
    taken_.clear();
  }

  ps::verbs::TrainedFiles taken() const {
    const Lock lock(mutex_);
    ps::verbs::TrainedFiles all{now_, {}};
    for (const auto& [lane, files] : taken_)
      all.numbers.insert(all.numbers.end(), files.begin(), files.end());
    return all;
  }

  void add(const std::vector<uint32_t>& numbers) {
    trained_.insert(numbers.begin(), numbers.end());
  }

  void begin_another(int epoch, uint64_t before) {
    std::vector<std::string> left;
    for (uint32_t file = 0; file < options_.files.size(); ++file)
      if (!trained_.contains(file)) left.push_back(options_.files[file]);
    check<IoError>(before + 1 < kMostPasses, "epoch ", epoch - 1, " is not trained after ",
                   kMostPasses, " passes, in each of which workers were lost; left are ",
                   fmt::format("{}", fmt::join(left, ", ")));
    job_.say(
        fmt::format("epoch: {}, {} files were left behind by workers that are lost; those who "
                    "are here train them now: {}",
                    epoch - 1, left.size(), fmt::join(left, ", ")));
    job_.meet(Milestone::passes_on(epoch, before), {});
    enter(epoch, before + 1);
  }

  /// The pass that the others are in, or that the epoch is whole.
  void find_pass(int epoch) {
    for (;;) {
      const uint64_t standing = job_.ask_standing();
      // Another worker has reached trained() already.
      whole_ = standing + 1 >= Milestone::trained(epoch).number;
      if (whole_) return enter(epoch, 0);  // no worker is waited for in it any more
      uint64_t before = 0;
      while (Milestone::passed(epoch, before + 1).number <= standing) ++before;
      const Milestone next = Milestone::passes_on(epoch, before);
      // If they go to trained() instead this is over, and we look again.
      if (standing < next.number && job_.meet(next, {}).empty()) continue;
      return enter(epoch, before + 1);
    }
  }

  Job& job_;
  const std::shared_ptr<ps::Client> servers_;
  const JobFilesOptions options_;
  // Used by the training thread, while no lane reads:
  std::set<uint32_t> trained_;  // in this epoch, by any worker
  bool whole_ = false;          // all files of the epoch are trained

  mutable Mutex mutex_;
  ps::FileQueue::Pass now_ GUARDED_BY(mutex_);
  std::map<uint32_t, std::vector<uint32_t>> taken_ GUARDED_BY(mutex_);  // in this pass, by lane
};

}  // namespace

std::shared_ptr<SharedFiles> job_files(Job& job, std::shared_ptr<ps::Client> servers,
                                       JobFilesOptions options) {
  return std::make_shared<JobFiles>(job, std::move(servers), std::move(options));
}

}  // namespace argosy
