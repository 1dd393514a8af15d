#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "argosy/base/env.h"

namespace argosy {

// Data sets with a known truth, for demos, tests and benchmarks without real data. The same options
// give the same bytes on every machine, with any number of threads. Files are written atomically
// into a folder that is made if it is missing. Options that make no sense throw ConfigError with
// the option's name.

/// raw: Criteo's rows, as the parser `criteo` reads them. multislot: the same instances already
/// scaled and hashed, "13 <dense> 1 <id> ... 1 <label>", with the slots that `criteo` gives.
enum class CriteoFormat : uint8_t { raw, multislot };

struct CriteoOptions {
  uint64_t rows = 1'000'000;
  uint64_t first_row = 0;  // number of the first: rows of other numbers are other data
  uint64_t vocab = 1000;   // distinct values of each categorical slot
  uint64_t seed = 1;
  size_t files = 8;
  CriteoFormat format = CriteoFormat::raw;
  uint64_t hash = 1'000'001;  // size of the id range in multislot
  size_t threads = 2;
  /// Called now and then on the caller's thread with the rows written so far.
  std::function<void(uint64_t rows)> progress = {};
};

/// AUCs are a model's expected ones on these rows, over the randomness of clicks.
struct CriteoReport {
  uint64_t rows = 0, clicks = 0;
  double bayes_auc = 0;     // of the true probabilities: no model can do better
  double additive_auc = 0;  // of the truth without its crossed effects: about where models that
                            // only add up effects of single features end
};

/// Click logs with power-law ids and a hidden model with crossed features (criteo_model.h):
/// out_dir/part-0, part-1, ... with equal shares of the rows. A row depends on seed, vocab and its
/// number only, so fewer rows are the beginning of more.
CriteoReport generate_criteo(Env& env, const std::string& out_dir, const CriteoOptions& options);

struct MnistOptions {
  size_t train = 6000, test = 1000;
  uint64_t seed = 1;
};
/// The four IDX files of MNIST, with the noisy shapes mnist_samples makes up: with the default seed
/// and counts the same images, rounded to bytes.
void generate_mnist(Env& env, const std::string& out_dir, const MnistOptions& options);

struct HousingOptions {
  size_t rows = 506;
  uint64_t seed = 1;
};
/// housing.data in the columns of the UCI file, with the prices housing_samples makes up. Features
/// have the ranges of the real ones, but are continuous, also where those are whole numbers.
void generate_housing(Env& env, const std::string& out_dir, const HousingOptions& options);

struct TextOptions {
  uint64_t words = 1'000'000;  // of the corpus
  size_t vocab = 2000;         // distinct words
  size_t topics = 50;
  size_t sentence = 20;  // words of a sentence
  uint64_t seed = 1;
};

struct TextReport {
  uint64_t words = 0, sentences = 0;
  size_t triples = 0, analogies = 0;
};

/// A corpus for word vectors with a known structure, and the relations they should learn from it:
///   corpus.txt     a sentence per line. Each has a topic and one of two forms. It has its topic's
///                  head word, in that form, and else words of the topic, markers of the form,
///                  which go with any topic, and common words, which go with everything.
///   triples.txt    "a b c": a and b are of one topic, c is of another, so a is nearer to b.
///   analogies.txt  "a b c d", below a line ": forms" as in questions-words.txt: a and b are the
///                  two forms of one head word, c and d another's, so b - a + c is near d.
TextReport generate_text(Env& env, const std::string& out_dir, const TextOptions& options);

}  // namespace argosy
