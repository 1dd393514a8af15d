// Word vectors by skip-gram with negative sampling, on a corpus that is generated if there is none.
// Under roles in the environment it trains in geo mode: every worker takes its share of the
// sentences with its own tables and exchanges differences with the servers now and then. Else it
// trains alone. The test loss, over pairs from held-out sentences, compares the two.
//
//   fleetrun --server_num=2 --worker_num=2 geo_word2vec
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "argosy/base/rng.h"
#include "example.h"

using namespace argosy;

namespace {

constexpr int64_t kDim = 16;
constexpr size_t kWindow = 2, kNegatives = 4, kTestShare = 10;  // every 10th sentence is for tests

std::vector<std::string> output_slots() {
  std::vector<std::string> slots = {"context"};
  for (size_t i = 0; i < kNegatives; ++i) slots.push_back("negative" + std::to_string(i));
  return slots;
}

/// Inner products of a word's vector with a neighbouring word's and with negative samples'.
ModelOutputs skip_gram(Builder& g) {
  const std::string init = "uniform(-0.05, 0.05)";
  const auto outputs = static_cast<int64_t>(output_slots().size());
  const Var label = g.input("label", {{-1, outputs}});
  const Var word =
      nn::embedding(g, std::array<std::string, 1>{"word"}, "words", kDim, {.init = init});
  const Var others = nn::embedding(g, output_slots(), "contexts", kDim, {.init = init});
  const Var products = nn::reshape(word, {-1, 1, kDim}) * nn::reshape(others, {-1, outputs, kDim});
  const Var scores = g.apply("sum", {products}, {{"axes", std::vector<int64_t>{-1}}});
  return {.loss = nn::logistic_loss(scores, label)};
}

struct Flags {
  std::string data = "word2vec_data";
  uint64_t words = 200000;
  int epochs = 5, k_steps = 20;
};

Flags parse(int argc, char** argv) {
  Flags flags;
  example::Flags("Word vectors by skip-gram, in geo mode under roles in the environment.")
      .add("--data", &flags.data, "folder with corpus.txt (word2vec_data)")
      .add("--words", &flags.words, "words to generate where the folder is missing (200000)")
      .add("--epochs", &flags.epochs, "times through the corpus (5)")
      .add("--k_steps", &flags.k_steps, "batches between two exchanges of differences (20)")
      .parse(argc, argv);
  return flags;
}

/// Sentences as numbers of words, the same numbers in every worker.
struct Corpus {
  std::vector<std::vector<uint64_t>> sentences;
  std::vector<uint64_t> all;  // concatenated, to draw words as often as they occur
};

Corpus read_corpus(const std::string& path) {
  std::ifstream file(path);
  check<IoError>(file.good(), path, ": cannot be opened");
  Corpus corpus;
  std::map<std::string, uint64_t> numbers;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<uint64_t>& sentence = corpus.sentences.emplace_back();
    for (std::string word; words >> word;)
      sentence.push_back(numbers.try_emplace(word, numbers.size()).first->second);
    corpus.all.insert(corpus.all.end(), sentence.begin(), sentence.end());
  }
  return corpus;
}

/// The pairs of some sentences, each with words that are drawn by chance.
class Pairs {
 public:
  Pairs(const Corpus& corpus, std::vector<size_t> sentences, uint64_t seed)
      : corpus_(corpus), sentences_(std::move(sentences)), random_(seed) {}

  bool operator()(Columns& out) {
    if (!find_pair()) return false;
    const std::vector<uint64_t>& sentence = corpus_.sentences[sentences_[at_]];
    size_t slot = 0;
    *out.add_ids(slot++, 1) = sentence[word_];
    *out.add_ids(slot++, 1) = sentence[beside_];
    for (size_t i = 0; i < kNegatives; ++i)
      *out.add_ids(slot++, 1) = corpus_.all[random_.below(drawn_++, corpus_.all.size())];
    float* const label = out.add_floats(slot, 1 + kNegatives);
    std::fill_n(label, 1 + kNegatives, 0.0F);
    label[0] = 1;
    check<DataError>(!out.commit(), "an instance of word2vec does not fit its slots");
    ++beside_;
    return true;
  }

 private:
  /// Goes on to the next pair from here, this one included.
  bool find_pair() {
    for (; at_ < sentences_.size(); ++at_, word_ = beside_ = 0) {
      const size_t size = corpus_.sentences[sentences_[at_]].size();
      for (; word_ < size; ++word_, beside_ = word_ < kWindow ? 0 : word_ - kWindow) {
        if (beside_ == word_) ++beside_;
        if (beside_ < std::min(size, word_ + kWindow + 1)) return true;
      }
    }
    return false;
  }

  const Corpus& corpus_;
  std::vector<size_t> sentences_;
  RandomStream random_;
  size_t at_ = 0, word_ = 0, beside_ = 0;
  uint64_t drawn_ = 0;
};

std::unique_ptr<Dataset> dataset(const BatchLayout& layout, const Corpus& corpus,
                                 std::vector<size_t> sentences, uint64_t seed) {
  LoaderOptions options{.slots = {{"word", SlotKind::ids, 1}}, .batch_size = 100, .shuffle = 10000};
  for (const std::string& slot : output_slots()) options.slots.push_back({slot, SlotKind::ids, 1});
  options.slots.push_back({"label", SlotKind::floats, 1 + kNegatives});
  auto epoch = std::make_shared<uint64_t>(0);
  return data_loader(layout, options, [&corpus, sentences, seed, epoch]() -> InstanceGenerator {
    return Pairs(corpus, sentences, seed + (*epoch)++);
  });
}

int train(Env& env, Fleet& fleet, const Flags& flags) {
  fleet.init_worker();
  if (fleet.is_first_worker() && !std::filesystem::exists(flags.data))
    generate_text(env, flags.data, {.words = flags.words, .vocab = 500, .topics = 20});
  fleet.barrier_worker();
  const Corpus corpus = read_corpus(flags.data + "/corpus.txt");
  std::vector<size_t> mine, test;
  for (size_t i = 0; i < corpus.sentences.size(); ++i) {
    if (i % kTestShare == 0)
      test.push_back(i);
    else if (i % static_cast<size_t>(fleet.worker_num()) ==
             static_cast<size_t>(fleet.worker_index()))
      mine.push_back(i);
  }
  const BatchLayout& layout = fleet.trainer().plan().layout;
  const auto data =
      dataset(layout, corpus, mine, 1000 * (1 + static_cast<uint64_t>(fleet.worker_index())));
  const auto test_data = dataset(layout, corpus, test, 0);

  FitOptions fit{.epochs = flags.epochs, .show = nullptr};
  fit.join = [&](MetricTally& metrics) { fleet.join(metrics); };
  fit.on_epoch = [&](const Progress& epoch, const auto&) {
    fleet.util().print_on_rank(
        "epoch " + std::to_string(epoch.epoch) + "  loss " + std::to_string(epoch.metric("loss")),
        0);
    return Next::go_on;
  };
  fleet.trainer().fit(*data, fit);
  fleet.barrier_worker();
  if (fleet.is_first_worker())
    std::printf("test loss %.6f\n", fleet.trainer().evaluate(*test_data)[0].value);
  fleet.stop_worker();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const Flags flags = parse(argc, argv);
    const auto env = real_env();
    Fleet fleet(*env);
    fleet.init();
    DistributedStrategy strategy;
    strategy.a_sync_configs.k_steps = flags.k_steps;
    fleet.distributed_optimizer({.rule = "adam", .learning_rate = "0.005"}, strategy)
        .minimize(skip_gram);
    if (!fleet.is_server()) return train(*env, fleet, flags);
    fleet.init_server();
    fleet.run_server();
    return 0;
  });
}
