#include "argosy/ckpt/pickle.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

std::string pickle_path(const std::string& name) {
  return std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/pickles/" + name;
}

std::vector<std::byte> pickle_bytes(const std::string& name) {
  return real_env()->read_file(pickle_path(name));
}

PickledArrays read(const std::string& name) {
  return read_pickled_arrays(pickle_bytes(name), name);
}

/// Of a pickle in the letters of its instructions.
std::string refused(std::string_view program) {
  return message_of<DataError>(
      [&] { read_pickled_arrays(std::as_bytes(std::span(program)), "here"); });
}

const Tensor& tensor(const PickledArrays& found, const std::string& name) {
  return std::ranges::find(found.tensors, name, &NamedTensor::name)->value;
}

const Tensor kW = Tensor::of<float>({2, 3}, {0, 0.25F, 0.5F, 0.75F, 1, 1.25F});

TEST(Pickle, TensorsOfEveryProtocolAreRead) {
  for (const char* name :
       {"tensors2.pdparams", "tensors3.pdparams", "tensors4.pdparams", "tensors5.pdparams"}) {
    SCOPED_TRACE(name);
    const PickledArrays found = read(name);
    ASSERT_EQ(found.tensors.size(), 2U);
    EXPECT_TRUE(same_bits(tensor(found, "fc.weight"), kW));
    EXPECT_TRUE(same_bits(tensor(found, "fc.bias"), Tensor::of<float>({3}, {0.5F, -1, 2})));
    EXPECT_EQ(found.texts.at("fc.weight"), "linear_0.w_0");
  }
}

TEST(Pickle, ArraysOfEveryTypeAndProtocolAreRead) {
  for (const char* name :
       {"arrays2.pdparams", "arrays3.pdparams", "arrays4.pdparams", "arrays5.pdparams"}) {
    SCOPED_TRACE(name);
    const PickledArrays found = read(name);
    ASSERT_EQ(found.tensors.size(), 8U);
    EXPECT_TRUE(same_bits(tensor(found, "fc_0.w_0"), kW));
    EXPECT_TRUE(same_bits(tensor(found, "count"), Tensor::of<int64_t>({1}, {7})));
    EXPECT_TRUE(same_bits(tensor(found, "half"), Tensor::of<float>({3}, {0.5F, -2, 65504})));
    EXPECT_TRUE(same_bits(tensor(found, "wide"), Tensor::of<double>({1, 1}, {1.5})));
    EXPECT_EQ(tensor(found, "empty").shape(), Shape({0, 3}));
    EXPECT_TRUE(same_bits(tensor(found, "step"), Tensor::of<int64_t>({1}, {12})));
    EXPECT_TRUE(same_bits(tensor(found, "rate"), Tensor::of<double>({1}, {0.25})));
    EXPECT_EQ(found.texts.at("StructuredToParameterName@@.fc_0.w_0"), "linear_0.w_0");
  }
}

TEST(Pickle, ArraysOfEarlierNumPyAreRead) {
  const std::vector<std::byte> bytes = pickle_bytes("tensors2.pdparams");
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string now = "numpy._core.multiarray";
  ASSERT_TRUE(has(text, now));
  for (size_t at = 0; (at = text.find(now, at)) != std::string::npos;)
    text.replace(at, now.size(), "numpy.core.multiarray");
  EXPECT_TRUE(same_bits(
      tensor(read_pickled_arrays(std::as_bytes(std::span(text)), "here"), "fc.weight"), kW));
}

TEST(Pickle, TensorsOfStaticProgramsAreReadWithoutEval) {
  EXPECT_TRUE(same_bits(tensor(read("static.pdparams"), "w"), kW));
}

TEST(Pickle, WhatIsNoFileOfArraysIsRefusedByNameAndOffset) {
  const auto message = [](const std::string& name) {
    return message_of<DataError>([&] { read(name); });
  };
  EXPECT_EQ(
      message("system.pickle"),
      "system.pickle: offset 13: names 'posix system', which no file of arrays needs; nothing "
      "of it was executed");
  EXPECT_TRUE(has(message("eval.pickle"), "calls eval, which is never done"))
      << message("eval.pickle");
  EXPECT_TRUE(has(message("columns.pickle"), "in the order of columns"))
      << message("columns.pickle");
  EXPECT_TRUE(has(message("big_endian.pickle"), "expected little-endian"))
      << message("big_endian.pickle");
  EXPECT_EQ(refused("\x80\x02i"),
            "here: offset 2: instruction 0x69, which no file of arrays needs");
  EXPECT_EQ(refused("\x80\x06}."), "here: offset 0: protocol 6, expected 2 to 5");
  EXPECT_EQ(refused("\x80\x02]."), "here: a pickle of something else, expected a dict of arrays");
  EXPECT_TRUE(has(refused("\x80\x02"), "ends early")) << refused("\x80\x02");
  EXPECT_TRUE(has(refused("\x80\x02X\xff\xff\xff\x7f"), "ends early"));
  EXPECT_EQ(refused("\x80\x02."), "here: offset 2: takes a value from an empty stack");
}

TEST(Pickle, AMutatedFileIsReadOrRefused) {
  for (const char* name : {"tensors2.pdparams", "arrays2.pdparams", "arrays4.pdparams",
                           "arrays5.pdparams", "static.pdparams", "adam.pdopt"}) {
    const std::vector<std::byte> bytes = pickle_bytes(name);
    const RandomStream random(5);
    size_t read = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
      std::vector<std::byte> mutated = bytes;
      const uint64_t at = i * 16, changes = 1 + random.below(at, 3);
      for (uint64_t k = 0; k < changes; ++k)
        mutated[random.below(at + 1 + 3 * k, mutated.size())] =
            std::byte{static_cast<uint8_t>(random.below(at + 2 + 3 * k, 256))};
      if (random.below(at + 15, 8) == 0) mutated.resize(random.below(at + 14, mutated.size()));
      try {
        read_pickled_arrays(mutated, "seed 5");
        ++read;
      } catch (const Error&) {  // one line
      }
    }
    EXPECT_GT(read, 0U) << name;  // a mutated value is as good as another
  }
}

TEST(Pickle, CyclesAndRepetitionsEnd) {
  // A dict that holds itself.
  const std::string_view cycle(
      "\x80\x02}q\x01X\x01\0\0\0"
      "ah\x01s.",
      15);
  EXPECT_TRUE(has(refused(cycle), "dicts in dicts")) << refused(cycle);
  // An array of 4 KB under 2,000 names.
  std::string many = "\x80\x02}(";
  const auto text = [](std::string_view name) {
    const auto size = static_cast<char>(name.size());
    return std::string("U") + size + std::string(name);
  };
  many += text("first") + "cnumpy.core.numeric\n_frombuffer\n(B" + std::string("\0\x10\0\0", 4) +
          std::string(4096, '\0') + "cnumpy\ndtype\n" + text("f4") + "\x85R" + "M" +
          std::string("\0\x04", 2) + "\x85" + text("C") + "tRq\x01";
  for (int i = 0; i < 2000; ++i) many += text(std::to_string(i)) + "h\x01";
  many += "u.";
  EXPECT_EQ(refused(many), "here: the same values again and again");
}

}  // namespace
}  // namespace argosy
