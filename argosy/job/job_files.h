#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/data/file_dataset.h"
#include "argosy/ps/client.h"
#include "argosy/ps/file_queue.h"

namespace argosy {

class Job;

struct JobFilesOptions {
  std::vector<std::string> files;  // the same for every worker
  ps::Stealing stealing = ps::Stealing::off;
  std::function<int()> epoch;  // the present one, the first is 1
};

/// The files of a job's epochs, which its workers take from the queue of server 0
/// (ps/file_queue.h):
///   1. At the end of a pass a worker reports its files as trained and meets the others. Each
///      brings the files it knows to be trained, so all who meet agree on the rest: files of
///      workers that were lost after taking them.
///   2. If there are any, all who have met train them in another pass; if not, the epoch is over.
///   3. A worker that comes late or is restarted finds the current pass by the milestones that are
///      complete.
/// So every file is trained to its end at least once. It is trained again if a worker was taken for
/// dead and was not, or pushed part of a file before it was lost, or if server 0 was lost with the
/// queue. The job outlives it.
std::shared_ptr<SharedFiles> job_files(Job& job, std::shared_ptr<ps::Client> servers,
                                       JobFilesOptions options);

}  // namespace argosy
