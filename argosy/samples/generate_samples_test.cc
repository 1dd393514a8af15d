#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "argosy/base/test_support.h"
#include "argosy/samples/generate.h"
#include "argosy/samples/samples.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

void expect_near(const Tensor& a, const Tensor& b, float most) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto x = a.as<float>(), y = b.as<float>();
  float worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  EXPECT_LT(worst, most);
}

TEST(GenerateMnist, WritesWhatMnistSamplesMakesUp) {
  const TestFolder folder;
  const auto env = real_env();
  const std::string out = folder.path() + "/mnist";
  generate_mnist(*env, out, {.train = 200, .test = 100});
  const Samples read = mnist_samples(*env, out);
  const Digits train = generated_digits(200, 1), test = generated_digits(100, 2);
  for (const auto& [digits, feeds] : {std::pair(&train, &read.train), {&test, &read.test}}) {
    expect_near(digits->x, feeds->at("x"), 0.51F / 255.0F);
    EXPECT_TRUE(std::ranges::equal(digits->label.as<int64_t>(), feeds->at("label").as<int64_t>()));
  }
}

TEST(GenerateMnist, WritesTheNumberOfImagesAndOthersForAnotherSeed) {
  const TestFolder folder;
  const auto env = real_env();
  const std::string one = folder.path() + "/1", two = folder.path() + "/2";
  generate_mnist(*env, one, {.train = 30, .test = 20});
  generate_mnist(*env, two, {.train = 30, .test = 20, .seed = 2});
  EXPECT_EQ(read_idx(*env, one + "/train-images-idx3-ubyte").shape(), (Shape{30, 28, 28}));
  EXPECT_EQ(read_idx(*env, one + "/t10k-labels-idx1-ubyte").shape(), (Shape{20}));
  for (const char* file : {"/train-images-idx3-ubyte", "/t10k-images-idx3-ubyte"})
    EXPECT_NE(env->read_file(one + file), env->read_file(two + file)) << file;
  EXPECT_NE(env->read_file(one + "/t10k-images-idx3-ubyte"),
            env->read_file(two + "/train-images-idx3-ubyte"));
}

TEST(GenerateHousing, WritesWhatHousingSamplesMakesUp) {
  const TestFolder folder;
  const auto env = real_env();
  generate_housing(*env, folder.path(), {});
  const Samples made_up = housing_samples(*env, ""), read = housing_samples(*env, folder.path());
  for (const auto& [a, b] : {std::pair(&made_up.train, &read.train), {&made_up.test, &read.test}}) {
    expect_near(a->at("x"), b->at("x"), 2e-3F);
    expect_near(a->at("y"), b->at("y"), 0.0051F);
  }
}

TEST(GenerateHousing, WritesTheNumberOfRows) {
  const TestFolder folder;
  const auto env = real_env();
  generate_housing(*env, folder.path(), {.rows = 20, .seed = 9});
  EXPECT_EQ(housing_samples(*env, folder.path()).train.at("x").shape(), (Shape{16, 13}));
}

TEST(GenerateSamples, RefuseOptionsThatMakeNoSense) {
  const auto env = real_env();
  EXPECT_EQ(message_of<ConfigError>([&] { generate_mnist(*env, "/none", {.train = 0}); }),
            "train is 0, expected 1 to 10000000 images");
  EXPECT_EQ(message_of<ConfigError>([&] { generate_mnist(*env, "/none", {.test = 0}); }),
            "test is 0, expected 1 to 10000000 images");
  EXPECT_EQ(message_of<ConfigError>([&] { generate_housing(*env, "/none", {.rows = 1}); }),
            "rows is 1, expected 2 to 10000000");
}

}  // namespace
}  // namespace argosy
