#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/config/config.h"
#include "argosy/data/dataset.h"
#include "argosy/data/file_dataset.h"
#include "argosy/plan/plan.h"

namespace argosy {

/// Generates the data that `runner.generate` describes if train_data_dir is missing, and logs it.
void generate_if_missing(Env& env, const Config& config, std::FILE* log);

/// How many files to train with `runner.generate` makes.
uint64_t generated_files(const Config& config);

/// The best AUC any model can have on a folder's data, if they were generated.
std::optional<double> best_auc(Env& env, const std::string& folder);

/// Whether the data are MNIST's images (`reader: mnist`) and not files of lines.
bool reads_digits(const Reading& reading);
/// The argument for mnist_samples(): the training folder if it exists, else ARGOSY_DATA's; "" if
/// the samples are to be made up.
std::string digits_folder(const Config& config);

/// Options that turn a reading's files into batches of the plan's layout. Throws ConfigError if
/// there is no file.
FileOptions file_options(const Config& config, const Reading& reading, const Plan& plan,
                         const TablesOptions& tables, int64_t batch_size);

/// Whether files are read anew in each epoch, not kept in memory.
bool streams(const Config& config);

/// Settles which of the files this process takes; none: all of them.
using DealFiles = std::function<void(FileOptions& options)>;
std::unique_ptr<Dataset> make_train_data(Env& env, const Config& config, const Plan& plan,
                                         const TablesOptions& tables, const DealFiles& deal = {},
                                         const SourceOptions& source = {});
/// Null if the configuration names no test data, or there are none.
std::unique_ptr<Dataset> make_test_data(Env& env, const Config& config, const Plan& plan,
                                        const TablesOptions& tables,
                                        const SourceOptions& source = {});

}  // namespace argosy
