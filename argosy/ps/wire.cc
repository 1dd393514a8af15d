#include "argosy/ps/wire.h"

#include <algorithm>

#include "argosy/base/bytes.h"
#include "argosy/base/error.h"
#include "argosy/ps/entry.h"

namespace argosy::ps {
namespace {

constexpr uint32_t kMaxLists = 1 << 16;  // a list takes more memory than it takes bytes
constexpr size_t kMaxName = 256;

std::vector<std::byte> taken(const ByteBuffer& buffer) {
  return {buffer.bytes().begin(), buffer.bytes().end()};
}

ByteSource source(const InFrame& frame, const char* what) { return {frame.payload->bytes(), what}; }

void expect_end(const ByteSource& in) {
  check<DataError>(in.left() == 0, in.what(), ": ", in.left(), " bytes too many");
}

/// A part of a payload as values of T; the payload is aligned, and so is every part.
template <class T>
std::span<const T> values(ByteSource& in, uint64_t n) {
  check<DataError>(n <= in.left() / sizeof(T), in.what(), ": ", n, " values of ", sizeof(T),
                   " bytes announced, ", in.left(), " bytes left");
  const auto bytes = in.take(n * sizeof(T));
  return {reinterpret_cast<const T*>(bytes.data()), n};
}

/// By key set.
std::vector<RowColumns> take_columns(ByteSource& in, const ServerShape& shape,
                                     std::span<const std::span<const Key>> keys) {
  std::vector<RowColumns> columns(keys.size());
  for (size_t set = 0; set < keys.size(); ++set) {
    if (shape.columns[set].counts) columns[set].counts = values<uint32_t>(in, keys[set].size());
    if (!shape.columns[set].scores) continue;
    columns[set].shows = values<float>(in, keys[set].size());
    columns[set].clicks = values<float>(in, keys[set].size());
  }
  return columns;
}

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  ByteBuffer out;
  out.put_text(hello.job);
  out.put(hello.plan_hash);
  out.put(hello.worker);
  out.put(hello.workers);
  out.put(hello.incarnation);
  out.put(hello.inflight);
  out.put(hello.answered);
  out.put(hello.restarts);
  out.put(hello.step);
  out.put(hello.milestone);
  out.put(hello.pass);
  out.put(static_cast<uint8_t>(hello.paused));
  out.put(static_cast<uint32_t>(hello.gathered.size()));
  for (const auto& [series, number] : hello.gathered) {
    out.put_text(series);
    out.put(number);
  }
  out.put_text(hello.token);
  out.put(hello.settled);
  out.put(hello.first);
  return taken(out);
}

Hello decode_hello(const InFrame& frame) {
  ByteSource in = source(frame, "hello");
  Hello hello;
  hello.job = in.get_text();
  check<DataError>(hello.job.size() <= kMaxName, "hello: a job name of ", hello.job.size(),
                   " bytes, expected at most ", kMaxName);
  hello.plan_hash = in.get<uint64_t>();
  hello.worker = in.get<uint32_t>();
  hello.workers = in.get<uint32_t>();
  hello.incarnation = in.get<uint64_t>();
  hello.inflight = in.get<uint32_t>();
  hello.answered = in.get<uint64_t>();
  hello.restarts = in.get<uint32_t>();
  hello.step = in.get<uint64_t>();
  hello.milestone = in.get<uint64_t>();
  hello.pass = in.get<uint64_t>();
  hello.paused = in.get<uint8_t>() != 0;
  for (auto left = in.get<uint32_t>(); left > 0; --left) {
    std::string series = in.get_text();
    hello.gathered[std::move(series)] = in.get<uint64_t>();
  }
  hello.token = in.get_text();
  hello.settled = in.get<uint64_t>();
  hello.first = in.get<uint64_t>();
  expect_end(in);
  return hello;
}

std::vector<std::byte> encode(const Welcome& welcome) {
  ByteBuffer out;
  out.put(welcome.server);
  out.put(welcome.applied);
  out.put(welcome.step);
  out.put(welcome.incarnation);
  out.put(welcome.journal);
  out.put(welcome.settled);
  return taken(out);
}

Welcome decode_welcome(const InFrame& frame) {
  ByteSource in = source(frame, "welcome");
  Welcome welcome;
  welcome.server = in.get<uint32_t>();
  welcome.applied = in.get<uint64_t>();
  welcome.step = in.get<uint64_t>();
  welcome.incarnation = in.get<uint64_t>();
  welcome.journal = in.get<uint32_t>();
  welcome.settled = in.get<uint64_t>();
  expect_end(in);
  return welcome;
}

std::vector<std::byte> encode(const Offers& offers) {
  ByteBuffer out;
  out.put(offers.server);
  out.put(offers.run);
  out.put(static_cast<uint32_t>(offers.places.size()));
  for (const uint64_t place : offers.places) out.put(place);
  return taken(out);
}

Offers decode_offers(const InFrame& frame) {
  ByteSource in = source(frame, "offers");
  Offers offers;
  offers.server = in.get<uint32_t>();
  offers.run = in.get<uint64_t>();
  const auto places = in.get<uint32_t>();
  check<DataError>(places <= in.left() / sizeof(uint64_t), "offers: ", places, " places in ",
                   in.left(), " bytes");
  for (uint32_t i = 0; i < places; ++i) offers.places.push_back(in.get<uint64_t>());
  expect_end(in);
  return offers;
}

std::vector<std::byte> encode(const Pong& pong) {
  ByteBuffer out;
  out.put(pong.received);
  out.put(pong.applied);
  out.put_text(pong.waits_for);
  return taken(out);
}

Pong decode_pong(const InFrame& frame) {
  ByteSource in = source(frame, "pong");
  Pong pong;
  pong.received = in.get<uint64_t>();
  pong.applied = in.get<uint64_t>();
  pong.waits_for = in.get_text();
  expect_end(in);
  return pong;
}

ServerShape::ServerShape(const Placement& placement, uint32_t server)
    : key_sets(placement.key_set_count()), columns(key_sets) {
  for (const Slice& slice : placement.slices)
    if (slice.server == server) dense_floats += slice.size();
  for (size_t i = 0; i < placement.tables.size(); ++i) {
    dims.push_back(placement.tables[i].dim);
    sets.push_back(placement.key_sets[i]);
    const Entry::Kind entry = Entry(placement.tables[i].entry).kind();
    Wanted& wanted = columns[placement.key_sets[i]];
    if (entry == Entry::Kind::show_click) wanted = {.counts = true, .scores = true};
    if (entry == Entry::Kind::count_filter) wanted.counts = true;
  }
}

ExchangeView parse_exchange(std::span<const std::byte> payload, const ServerShape& shape) {
  ByteSource in(payload, "exchange");
  ExchangeView view;
  view.head = in.get<ExchangeHead>();
  const ExchangeHead& head = view.head;
  check<DataError>((head.flags & ~ExchangeHead::kAllFlags) == 0, "exchange: flags ", head.flags,
                   ", expected none above ", ExchangeHead::kAllFlags);
  check<DataError>(head.sequence > 0, "exchange: sequence 0, but the first is 1");
  check<DataError>(head.lists <= kMaxLists, "exchange: ", head.lists, " lists, expected at most ",
                   kMaxLists);
  const auto numbers = values<uint64_t>(in, head.lists);
  std::span<const uint64_t> pulled;
  if (head.has(ExchangeHead::kPullRows)) pulled = values<uint64_t>(in, shape.key_sets);
  view.lists.resize(head.lists);
  for (size_t i = 0; i < view.lists.size(); ++i) {
    const auto counts = values<uint64_t>(in, shape.key_sets);
    view.lists[i].number = numbers[i];
    view.lists[i].counts.assign(counts.begin(), counts.end());
  }
  for (const uint64_t n : pulled) view.pull.push_back(values<Key>(in, n));
  if (head.has(ExchangeHead::kCarriesKeys))
    for (ExchangeView::List& list : view.lists)
      for (const uint64_t n : list.counts) list.keys.push_back(values<Key>(in, n));
  if (head.has(ExchangeHead::kPushDense)) view.dense = values<float>(in, shape.dense_floats);
  for (ExchangeView::List& list : view.lists)
    for (size_t table = 0; table < shape.dims.size(); ++table) {
      const uint64_t rows = list.counts[shape.sets[table]];
      check<DataError>(rows <= payload.size(), "exchange: ", rows, " rows announced in ",
                       payload.size(), " bytes");
      list.grads.push_back(values<float>(in, rows * shape.dims[table]));
    }
  if (!view.pull.empty()) view.pull_columns = take_columns(in, shape, view.pull);
  for (ExchangeView::List& list : view.lists)
    if (!list.keys.empty()) list.columns = take_columns(in, shape, list.keys);
  expect_end(in);
  return view;
}

ReplyView parse_reply(std::span<const std::byte> payload, const ServerShape& shape, bool dense,
                      std::span<const size_t> keys) {
  ByteSource in(payload, "reply");
  ReplyView view;
  view.head = in.get<ReplyHead>();
  if (dense) view.dense = values<float>(in, shape.dense_floats);
  if (!keys.empty())
    for (size_t table = 0; table < shape.dims.size(); ++table)
      view.rows.push_back(values<float>(in, keys[shape.sets[table]] * shape.dims[table]));
  expect_end(in);
  return view;
}

}  // namespace argosy::ps
