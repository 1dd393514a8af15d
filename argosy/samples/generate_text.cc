#include <algorithm>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/samples/generate.h"
#include "argosy/samples/generate_support.h"

namespace argosy {
namespace {

constexpr size_t kForms = 2;
constexpr size_t kSharedOf = 10;      // common words, and markers of each form: vocab over this
constexpr size_t kFewestOfTopic = 5;  // besides its head words
constexpr size_t kTriplesOfTopic = 20;

/// A word that can be spoken, another one for each number: two syllables or more.
std::string spell(size_t number) {
  constexpr std::string_view kConsonants = "bdfghklmnprstvz", kVowels = "aeiou";
  constexpr size_t kSyllables = kConsonants.size() * kVowels.size();
  std::string word;
  for (size_t left = number; left > 0 || word.size() < 4; left /= kSyllables) {
    word += kConsonants[left % kSyllables / kVowels.size()];
    word += kVowels[left % kVowels.size()];
  }
  return word;
}

/// The words. The vocabulary is: markers of the first form, of the second, common words, then topic
/// by topic the two forms of its head word and the others.
class Lexicon {
 public:
  explicit Lexicon(const TextOptions& options)
      : topics_(options.topics), markers_(options.vocab / kSharedOf), common_(markers_) {
    const size_t shared = kForms * markers_ + common_;
    of_topic_ = (options.vocab - shared) / topics_;
    check<ConfigError>(markers_ > 0 && of_topic_ >= kForms + kFewestOfTopic, "vocab is ",
                       options.vocab, ", too few words for ", topics_, " topics");
    // The remainder of the division by topics goes to the common words.
    common_ += options.vocab - shared - of_topic_ * topics_;
    words_.reserve(options.vocab);
    for (size_t i = 0; i < options.vocab; ++i) words_.push_back(spell(i));
  }

  size_t topics() const { return topics_; }
  size_t markers() const { return markers_; }
  size_t commons() const { return common_; }
  size_t others() const { return of_topic_ - kForms; }

  std::string_view marker(size_t form, size_t i) const { return words_[form * markers_ + i]; }
  std::string_view common(size_t i) const { return words_[kForms * markers_ + i]; }
  std::string_view head(size_t topic, size_t form) const { return words_[start(topic) + form]; }
  std::string_view other(size_t topic, size_t i) const { return words_[start(topic) + kForms + i]; }

 private:
  size_t start(size_t topic) const { return kForms * markers_ + common_ + topic * of_topic_; }

  size_t topics_, markers_, common_, of_topic_ = 0;
  std::vector<std::string> words_;
};

/// One of n, the first ones more often: the density of the k-th is about k^(-1/2).
size_t uneven(double uniform, size_t n) {
  return std::min(n - 1, static_cast<size_t>(uniform * uniform * static_cast<double>(n)));
}

struct Sentence {
  size_t topic, form;
};

/// Any word of a sentence but its head word.
std::string_view draw_word(const Lexicon& lexicon, const RandomStream& random, uint64_t at,
                           const Sentence& sentence) {
  const double kind = random.uniform(2 * at), which = random.uniform(2 * at + 1);
  if (kind < 0.2) return lexicon.common(uneven(which, lexicon.commons()));
  if (kind < 0.5) return lexicon.marker(sentence.form, uneven(which, lexicon.markers()));
  return lexicon.other(sentence.topic, uneven(which, lexicon.others()));
}

uint64_t write_corpus(AtomicTextFile& file, const Lexicon& lexicon, const TextOptions& options) {
  uint64_t sentences = 0;
  for (uint64_t left = options.words; left > 0; ++sentences) {
    const RandomStream random(options.seed, sentences);
    const Sentence sentence{random.below(0, lexicon.topics()), random.below(1, kForms)};
    const uint64_t words = std::min<uint64_t>(left, options.sentence);
    // Once only: beside itself, a head word would look less like its other form.
    const uint64_t head = random.below(2, words);
    for (uint64_t i = 0; i < words; ++i) {
      file.append(i == head ? lexicon.head(sentence.topic, sentence.form)
                            : draw_word(lexicon, random, i + 2, sentence));
      file.append(i + 1 < words ? " " : "\n");
    }
    left -= words;
  }
  return sentences;
}

size_t write_triples(AtomicTextFile& file, const Lexicon& lexicon, uint64_t seed) {
  // Separate from the sentences' streams, which are numbered from 0.
  const RandomStream random(seed, UINT64_MAX);
  const size_t n = lexicon.others();
  uint64_t draw = 0;
  for (size_t topic = 0; topic < lexicon.topics(); ++topic) {
    for (size_t i = 0; i < kTriplesOfTopic; ++i) {
      const size_t first = random.below(draw++, n);
      const size_t second = (first + 1 + random.below(draw++, n - 1)) % n;
      const size_t strange =
          (topic + 1 + random.below(draw++, lexicon.topics() - 1)) % lexicon.topics();
      file.append(lexicon.other(topic, first));
      file.append(" ");
      file.append(lexicon.other(topic, second));
      file.append(" ");
      file.append(lexicon.other(strange, random.below(draw++, n)));
      file.append("\n");
    }
  }
  return lexicon.topics() * kTriplesOfTopic;
}

/// Each topic with the next few.
size_t write_analogies(AtomicTextFile& file, const Lexicon& lexicon) {
  constexpr size_t kNext = 10;
  const size_t topics = lexicon.topics(), each = std::min(kNext, topics - 1);
  file.append(": forms\n");
  for (size_t topic = 0; topic < topics; ++topic) {
    for (size_t step = 1; step <= each; ++step) {
      for (const size_t of : {topic, (topic + step) % topics}) {
        for (size_t form = 0; form < kForms; ++form) {
          file.append(lexicon.head(of, form));
          file.append(of != topic && form + 1 == kForms ? "\n" : " ");
        }
      }
    }
  }
  return topics * each;
}

}  // namespace

TextReport generate_text(Env& env, const std::string& out_dir, const TextOptions& options) {
  constexpr size_t kLongest = 10000;
  check<ConfigError>(options.words > 0, "words is 0, expected at least 1");
  check<ConfigError>(options.topics >= 2, "topics is ", options.topics, ", expected at least 2");
  check<ConfigError>(options.sentence >= 2 && options.sentence <= kLongest, "sentence is ",
                     options.sentence, ", expected 2 to ", kLongest, " words");
  const Lexicon lexicon(options);
  env.make_directories(out_dir);
  AtomicTextFile corpus(env, out_dir + "/corpus.txt"), triples(env, out_dir + "/triples.txt"),
      analogies(env, out_dir + "/analogies.txt");
  TextReport report{.words = options.words};
  report.sentences = write_corpus(corpus, lexicon, options);
  report.triples = write_triples(triples, lexicon, options.seed);
  report.analogies = write_analogies(analogies, lexicon);
  for (AtomicTextFile* file : {&corpus, &triples, &analogies}) file->finish();
  return report;
}

}  // namespace argosy
