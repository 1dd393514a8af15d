#include "argosy/ps/table_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy::ps {
namespace {

TEST(TableFile, RowsThatAreNotFiniteAreNotSaved) {
  const auto table = make_row_table({.name = "clicks", .dim = 2, .rule = "adam"});
  std::vector<Key> keys;
  for (Key key = 1; key <= 10'000; ++key) keys.push_back(key);
  std::vector<float> rows(2 * keys.size(), 0.5F);
  table->assign(keys, rows);
  ByteBuffer fine;
  save_table(*table, fine);
  EXPECT_FALSE(fine.bytes().empty());
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    table->assign(std::vector<Key>{7'000}, std::vector<float>{1, bad});
    ByteBuffer out;
    const std::string message = message_of<DataError>([&] { save_table(*table, out); });
    EXPECT_TRUE(message.starts_with("table 'clicks': not saved, its row 7000 holds ")) << message;
  }
}

}  // namespace
}  // namespace argosy::ps
