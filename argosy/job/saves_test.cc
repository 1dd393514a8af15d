#include "argosy/job/saves.h"

#include <gtest/gtest.h>

#include "argosy/base/test_support.h"
#include "argosy/nn/layers.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

class Notes : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  /// First a server notes it, then the first worker writes it.
  void save(SaveNotes& notes, const std::string& name, uint64_t generation) {
    notes.add(at(name), generation);
    trainer_.save(at(name));
  }

  TestFolder folder_;
  const std::unique_ptr<Env> env_ = real_env();
  Trainer trainer_{
      *env_,
      [](Builder& g) {
        return ModelOutputs{.loss = nn::mean(nn::linear(g.input("x", {{-1, 2}}), 1, "fc"))};
      },
      {}};
};

TEST_F(Notes, TheLastSaveThatIsCompleteCounts) {
  SaveNotes notes(*env_, at("notes"), "server-0");
  notes.begin();
  EXPECT_FALSE(notes.newest());
  save(notes, "a folder", 1);
  save(notes, "b", 1);
  EXPECT_EQ(notes.newest()->folder, at("b"));
  save(notes, "a folder", 2);
  notes.add(at("b"), 2);  // and is cut off
  EXPECT_EQ(SaveNotes(*env_, at("notes"), "server-0").newest()->folder, at("a folder"));
}

TEST_F(Notes, ASaveOfAnEarlierJobDoesNotCount) {
  SaveNotes earlier(*env_, at("notes"), "server-0");
  earlier.begin();
  save(earlier, "model", 1);
  SaveNotes notes(*env_, at("notes"), "server-0");
  notes.begin();
  EXPECT_FALSE(notes.newest());
  notes.add(at("model"), 2);  // and is cut off
  EXPECT_FALSE(notes.newest());
  trainer_.save(at("model"));
  EXPECT_EQ(notes.newest()->folder, at("model"));
  notes.remove();
  EXPECT_FALSE(notes.newest());
}

TEST_F(Notes, SayWhichRunsJournalAJobGoesOnFrom) {
  const auto again = [&] { return SaveNotes(*env_, at("notes"), "server-0"); };
  EXPECT_EQ(again().run(), 0U);
  SaveNotes notes(*env_, at("notes"), "server-0");
  notes.begin(17);
  EXPECT_EQ(again().run(), 17U);
  EXPECT_FALSE(again().resumes());
  save(notes, "model", 1);
  again().begin_to_resume();
  EXPECT_TRUE(again().resumes());
  EXPECT_EQ(again().newest()->folder, at("model"));
  again().has_resumed();
  EXPECT_FALSE(again().resumes());
  EXPECT_EQ(again().run(), 17U);
  EXPECT_EQ(again().newest()->folder, at("model"));
  notes.remove();
  EXPECT_EQ(again().run(), 0U);
}

TEST_F(Notes, AreOfTheRunOfTheLauncherThatHasBegunThem) {
  const auto again = [&] { return SaveNotes(*env_, at("notes"), "server-0"); };
  EXPECT_FALSE(again().are_of("first"));
  EXPECT_TRUE(again().are_of(""));
  again().begun_by("first");
  EXPECT_TRUE(again().are_of("first"));
  EXPECT_FALSE(again().are_of("second"));
  again().begun_by("second");
  EXPECT_FALSE(again().are_of("first"));
  EXPECT_TRUE(again().are_of("second"));
}

TEST_F(Notes, WithoutAFolderNothingIsWrittenDown) {
  SaveNotes notes(*env_, "", "server-0");
  notes.begin();
  notes.add(at("model"), 1);
  EXPECT_FALSE(notes.newest());
  notes.remove();
}

}  // namespace
}  // namespace argosy
