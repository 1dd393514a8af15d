// What servers and workers say to each other: whole messages come back as they went, damaged ones
// are refused or mean something that lies within their bytes.
#include "argosy/ps/wire.h"

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/ps/test_exchanges.h"

namespace argosy::ps {
namespace {

constexpr uint32_t kEverything = ExchangeHead::kPushDense | ExchangeHead::kPullDense |
                                 ExchangeHead::kPullRows | ExchangeHead::kCarriesKeys;

const Hello kHello{.job = "job",
                   .plan_hash = 0x1234567890abcdef,
                   .worker = 3,
                   .workers = 5,
                   .incarnation = 99,
                   .inflight = 20,
                   .answered = 17,
                   .restarts = 2,
                   .step = 300,
                   .milestone = 8,
                   .pass = 4,
                   .paused = true,
                   .token = "secret",
                   .settled = settling::at_step(420)};
const Welcome kWelcome{.server = 2, .applied = 41, .step = 1000, .incarnation = 7};
const Offers kOffers{
    .server = 1, .run = 9, .places = {settling::at_step(400), settling::at_step(420)}};
const Pong kPong{.received = 9, .applied = 8, .waits_for = "step 9: worker 0 wait for worker 1"};
const Request kRequest =
    request_of(verbs::Gather{"fleet", 3, "metrics", {std::byte{1}, std::byte{0}, std::byte{3}}});

RawExchange everything() {
  return {.sequence = 12,
          .flags = kEverything,
          .pull = {5, 6, 7},
          .lists = {{.number = 3, .keys = {5}, .grads = {1, 2}},
                    {.number = 9, .keys = {6, 8}, .grads = {3, 4, 5, 6}}},
          .dense = {1, 2, 3, 4, 5, 6, 7, 8}};
}

ServerShape shape() { return {adding_placement(), 0}; }

ExchangeView parsed(const InFrame& frame) {
  return parse_exchange(frame.payload->bytes(), shape());
}

template <class T>
std::vector<T> copied(std::span<const T> values) {
  return {values.begin(), values.end()};
}

TEST(Wire, GreetingsComeBackAsTheyWent) {
  const Hello hello = decode_hello(in_frame(FrameKind::hello, encode(kHello)));
  EXPECT_EQ(encode(hello), encode(kHello));
  EXPECT_EQ(hello.job, "job");
  EXPECT_EQ(hello.worker, 3U);
  EXPECT_EQ(hello.answered, 17U);
  EXPECT_EQ(hello.restarts, 2U);
  EXPECT_EQ(hello.step, 300U);
  EXPECT_EQ(hello.milestone, 8U);
  EXPECT_EQ(hello.pass, 4U);
  EXPECT_TRUE(hello.paused);
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(settling::step_of(hello.settled), 420U);
  const Welcome welcome = decode_welcome(in_frame(FrameKind::welcome, encode(kWelcome)));
  EXPECT_EQ(encode(welcome), encode(kWelcome));
  EXPECT_EQ(welcome.applied, 41U);
  EXPECT_EQ(welcome.incarnation, 7U);
  const Offers offers = decode_offers(in_frame(FrameKind::offers, encode(kOffers)));
  EXPECT_EQ(encode(offers), encode(kOffers));
  EXPECT_EQ(offers.run, 9U);
  EXPECT_EQ(offers.places, kOffers.places);
  const Pong pong = decode_pong(in_frame(FrameKind::pong, encode(kPong)));
  EXPECT_EQ(encode(pong), encode(kPong));
  EXPECT_EQ(pong.waits_for, kPong.waits_for);
  const Request request = decode_request(in_frame(FrameKind::control, encode(kRequest)));
  EXPECT_EQ(request.verb, kRequest.verb);
  EXPECT_EQ(request.fields, kRequest.fields);
  const auto gather = decode_fields<verbs::Gather>(request.fields, "gather");
  EXPECT_EQ(gather.series, "fleet");
  EXPECT_EQ(gather.number, 3U);
  EXPECT_EQ(gather.name, "metrics");
  EXPECT_EQ(gather.bytes, (std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{3}}));
}

TEST(Wire, AnExchangeComesBackAsItWent) {
  const InFrame frame = in_frame(FrameKind::exchange, everything().bytes());
  const ExchangeView view = parsed(frame);
  EXPECT_EQ(view.head.sequence, 12U);
  EXPECT_TRUE(view.pushes());
  ASSERT_EQ(view.pull.size(), 1U);
  EXPECT_EQ(copied(view.pull[0]), (std::vector<Key>{5, 6, 7}));
  ASSERT_EQ(view.lists.size(), 2U);
  EXPECT_EQ(view.lists[1].number, 9U);
  EXPECT_EQ(copied(view.lists[1].keys.at(0)), (std::vector<Key>{6, 8}));
  EXPECT_EQ(copied(view.lists[1].grads.at(0)), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(copied(view.dense), everything().dense);
}

TEST(Wire, AnExchangeNeedNotCarryAnything) {
  const InFrame frame = in_frame(FrameKind::exchange, RawExchange{}.bytes());
  const ExchangeView view = parsed(frame);
  EXPECT_FALSE(view.pushes());
  EXPECT_TRUE(view.pull.empty());
  EXPECT_TRUE(view.dense.empty());
}

TEST(Wire, AReplyIsReadAsItWasAskedFor) {
  ByteBuffer out;
  out.put(ReplyHead{.sequence = 4, .step = 5, .durable = 3, .staleness = 2});
  for (int i = 0; i < 14; ++i) out.put(static_cast<float>(i));
  const InFrame frame = in_frame(FrameKind::reply, out.bytes());
  const std::span<const std::byte> payload = frame.payload->bytes();
  const ReplyView view = parse_reply(payload, shape(), true, std::vector<size_t>{3});
  EXPECT_EQ(view.head.step, 5U);
  EXPECT_EQ(view.dense.size(), kTestDense);
  EXPECT_EQ(copied(view.rows.at(0)), (std::vector<float>{8, 9, 10, 11, 12, 13}));
  const auto refusal = [&](bool dense, const std::vector<size_t>& keys) {
    return message_of<DataError>([&] { parse_reply(payload, shape(), dense, keys); });
  };
  EXPECT_EQ(refusal(true, {2}), "reply: 8 bytes too many");
  EXPECT_EQ(refusal(true, {4}), "reply: 8 values of 4 bytes announced, 24 bytes left");
  EXPECT_EQ(refusal(false, {}), "reply: 56 bytes too many");
  for (size_t size = 0; size < payload.size(); ++size)
    EXPECT_THROW(parse_reply(payload.first(size), shape(), true, std::vector<size_t>{3}),
                 DataError);
}

/// Whatever a damaged payload means: it lies within its bytes.
void expect_within(const ExchangeView& view, std::span<const std::byte> payload) {
  const std::byte* const begin = payload.data();
  const std::byte* const end = begin + payload.size();
  const auto within = [&](const auto& part) {
    const auto bytes = std::as_bytes(part);
    EXPECT_TRUE(bytes.empty() || (bytes.data() >= begin && bytes.data() + bytes.size() <= end));
  };
  for (const auto& keys : view.pull) within(keys);
  within(view.dense);
  EXPECT_LE(view.lists.size() * sizeof(uint64_t), payload.size());
  for (const ExchangeView::List& list : view.lists) {
    for (const auto& keys : list.keys) within(keys);
    for (const auto& grads : list.grads) within(grads);
  }
}

/// True if it was refused.
bool refuses(const InFrame& frame) {
  try {
    expect_within(parsed(frame), frame.payload->bytes());
    return false;
  } catch (const DataError&) {
    return true;
  }
}

TEST(Wire, EveryPrefixOfAMessageIsRefused) {
  const auto prefixes = [](const std::vector<std::byte>& whole, auto decode) {
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_THROW(decode(in_frame(FrameKind::hello, std::span(whole).first(size))), DataError)
          << size << " of " << whole.size();
  };
  prefixes(encode(kHello), decode_hello);
  prefixes(encode(kWelcome), decode_welcome);
  prefixes(encode(kOffers), decode_offers);
  prefixes(encode(kPong), decode_pong);
  prefixes(encode(Request{.verb = kRequest.verb}), decode_request);
  prefixes(kRequest.fields, [](const InFrame& frame) {
    decode_fields<verbs::Gather>(frame.payload->bytes(), "gather");
  });
  prefixes(everything().bytes(), parsed);
}

TEST(Wire, BytesBehindAMessageAreRefused) {
  const auto longer = [](std::vector<std::byte> whole, auto decode) {
    whole.push_back(std::byte{0});
    return message_of<DataError>([&] { decode(in_frame(FrameKind::hello, whole)); });
  };
  EXPECT_EQ(longer(encode(kHello), decode_hello), "hello: 1 bytes too many");
  EXPECT_EQ(longer(encode(kWelcome), decode_welcome), "welcome: 1 bytes too many");
  EXPECT_EQ(longer(encode(kOffers), decode_offers), "offers: 1 bytes too many");
  EXPECT_EQ(longer(encode(kPong), decode_pong), "pong: 1 bytes too many");
  EXPECT_EQ(longer(everything().bytes(), parsed), "exchange: 1 bytes too many");
}

TEST(Wire, EveryBytesDamageIsRefusedOrStaysWithinTheBytes) {
  const std::vector<std::byte> exchange = everything().bytes();
  int refused = 0;
  for (size_t at = 0; at < exchange.size(); ++at)
    for (const uint8_t flip : {0x01, 0x10, 0x80, 0xff}) {
      std::vector<std::byte> damaged = exchange;
      damaged[at] ^= std::byte{flip};
      refused += refuses(in_frame(FrameKind::exchange, damaged)) ? 1 : 0;
    }
  EXPECT_GT(refused, 100);
  const auto greetings = [](const std::vector<std::byte>& whole, auto decode) {
    for (size_t at = 0; at < whole.size(); ++at)
      for (const uint8_t flip : {0x01, 0x10, 0x80, 0xff}) {
        std::vector<std::byte> damaged = whole;
        damaged[at] ^= std::byte{flip};
        try {
          EXPECT_LE(encode(decode(in_frame(FrameKind::hello, damaged))).size(), whole.size());
        } catch (const DataError&) {
          continue;
        }
      }
  };
  greetings(encode(kHello), decode_hello);
  greetings(encode(kWelcome), decode_welcome);
  greetings(encode(kPong), decode_pong);
  greetings(encode(kRequest), decode_request);
}

TEST(Wire, RandomBytesAreRefusedOrStayWithinTheBytes) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::byte> bytes = *random_bytes(seed % 400, seed);
    refuses(in_frame(FrameKind::exchange, bytes));
    // Numbers that could be right are looked at more closely than wild ones.
    const RandomStream random(seed);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      const uint64_t small = random.below(at, 6);
      std::memcpy(bytes.data() + at, &small, sizeof small);
    }
    refuses(in_frame(FrameKind::exchange, bytes));
  }
}

TEST(Wire, NumbersWithoutMeasureAreRefusedBeforeAnythingIsAllocated) {
  const auto refusal = [](std::vector<uint64_t> numbers, uint32_t flags, uint32_t lists) {
    ByteBuffer out;
    out.put(ExchangeHead{.sequence = 1, .flags = flags, .lists = lists});
    out.put_all(std::span<const uint64_t>(numbers));
    return message_of<DataError>([&] { parsed(in_frame(FrameKind::exchange, out.bytes())); });
  };
  constexpr uint64_t kWild = uint64_t{1} << 61;
  EXPECT_EQ(refusal({}, 0, ~0U), "exchange: 4294967295 lists, expected at most 65536");
  EXPECT_EQ(refusal({}, 0, 65536), "exchange: 65536 values of 8 bytes announced, 0 bytes left");
  EXPECT_EQ(refusal({kWild}, ExchangeHead::kPullRows, 0),
            "exchange: 2305843009213693952 values of 8 bytes announced, 0 bytes left");
  EXPECT_EQ(refusal({1, kWild}, 0, 1), "exchange: 2305843009213693952 rows announced in 56 bytes");
  EXPECT_EQ(refusal({1, kWild}, ExchangeHead::kCarriesKeys, 1),
            "exchange: 2305843009213693952 values of 8 bytes announced, 0 bytes left");
  Hello hello = kHello;
  hello.job = std::string(257, 'x');
  EXPECT_EQ(message_of<DataError>([&] { decode_hello(in_frame(FrameKind::hello, encode(hello))); }),
            "hello: a job name of 257 bytes, expected at most 256");
}

}  // namespace
}  // namespace argosy::ps
