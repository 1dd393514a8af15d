#include "argosy/train/manifest.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

TEST(Manifest, SaysWhatItIsOfEachFile) {
  Manifest manifest;
  manifest.resume.epoch = 2;
  manifest.generation = 7;
  manifest.tables = {{"factors", "factors.7.rows", {812, 24080, 0x1f00a9c3d2e4b57}}};
  const std::string text =
      "argosy checkpoint 3\nepoch 2\nbatches 0\ngeneration 7\n"
      "table factors factors.7.rows 812 24080 01f00a9c3d2e4b57\n";
  EXPECT_EQ(manifest.text(), text);
  const Manifest read = Manifest::parse(text, "here");
  EXPECT_EQ(read.text(), text);
  EXPECT_EQ(read.tables[0].sum, manifest.tables[0].sum);
}

TEST(Manifest, OfACutNamesThePartsOfTheServers) {
  Manifest manifest;
  manifest.resume.epoch = 2;
  manifest.generation = 3;
  manifest.tables = {{"factors", "server-0.cut", {812, 24080, 0x1f00a9c3d2e4b57}}};
  manifest.cuts = {{"", "server-0.cut", {900, 24080, 0x1f00a9c3d2e4b57}}};
  manifest.shapes = {{"fc.0.w", {400, 9}}, {"scale", {}}};
  const std::string text =
      "argosy checkpoint 4\nepoch 2\nbatches 0\ngeneration 3\n"
      "table factors server-0.cut 812 24080 01f00a9c3d2e4b57\n"
      "cut server-0.cut 900 24080 01f00a9c3d2e4b57\n"
      "shape fc.0.w 400 9\n"
      "shape scale\n";
  EXPECT_EQ(manifest.text(), text);
  EXPECT_EQ(Manifest::parse(text, "here").text(), text);
}

TEST(Manifest, OfEarlierReleasesHasNoSums) {
  for (const char* header : {"argosy checkpoint 1", "argosy checkpoint 2"}) {
    const Manifest read =
        Manifest::parse(std::string(header) + "\nepoch 2\ntable factors factors.7.rows\n", "here");
    EXPECT_EQ(read.tables.at(0).file, "factors.7.rows");
    EXPECT_EQ(read.tables.at(0).sum.bytes, 0U);
  }
}

TEST(Manifest, LinesThatCannotBeReadAreQuoted) {
  for (const std::string line :
       {"table factors factors.7.rows", "table factors factors.7.rows 812 24080 x",
        "table factors factors.7.rows 812 -1 1f", "table factors factors.7.rows 1 0 1f",
        "table factors ../rows 812 24080 1f", "cut ../server-0.cut 812 24080 1f", "shape w 3 x",
        "tables factors factors.7.rows 812 24080 1f"})
    EXPECT_EQ(message_of<DataError>(
                  [&] { Manifest::parse("argosy checkpoint 3\n" + line + "\n", "here"); }),
              "here: cannot read '" + line + "' of the checkpoint");
  EXPECT_EQ(message_of<DataError>([] { Manifest::parse("argosy checkpoint 5\n", "here"); }),
            "here: begins with 'argosy checkpoint 5', expected 'argosy checkpoint 4'");
}

}  // namespace
}  // namespace argosy
