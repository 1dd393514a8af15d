#include "targets.h"

#include <fmt/format.h>

#include "argosy/base/call.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/hash.h"
#include "argosy/ckpt/pickle.h"
#include "argosy/config/config.h"
#include "argosy/data/byte_stream.h"
#include "argosy/data/line_tally.h"
#include "argosy/data/parse_lines.h"
#include "argosy/graph/program.h"
#include "argosy/launch/status_view.h"
#include "argosy/log/writer.h"
#include "argosy/ps/cut.h"
#include "argosy/ps/row_sums.h"
#include "argosy/ps/table_file.h"
#include "argosy/ps/verbs.h"
#include "argosy/ps/wire.h"
#include "argosy/train/saved_model.h"
#include "argosy/world/disk_env.h"

namespace argosy::fuzz {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string string_of(std::span<const std::byte> bytes) { return std::string(text_of(bytes)); }

/// A single file in memory, under any name.
class MemoryEnv final : public Env {
 public:
  explicit MemoryEnv(std::span<const std::byte> bytes = {})
      : content_(bytes.begin(), bytes.end()) {}
  std::span<const std::byte> content() const { return content_; }

  Time now() override { return {}; }
  TimerId schedule(Duration, std::function<void()>) override { return 0; }
  bool cancel(TimerId) override { return false; }
  uint64_t random() override { return 0; }
  std::unique_ptr<WritableFile> create_file(const std::string&) override {
    return std::make_unique<File>(content_);
  }
  std::unique_ptr<WritableFile> create_new_file(const std::string& path) override {
    return create_file(path);
  }
  std::unique_ptr<ReadableFile> open_file(const std::string&) override {
    return std::make_unique<Opened>(content_);
  }
  bool file_exists(const std::string&) override { return true; }
  void rename_file(const std::string&, const std::string&) override {}
  void link_file(const std::string&, const std::string&) override {}
  void remove_file(const std::string&) override {}
  void truncate_file(const std::string&, uint64_t size) override { content_.resize(size); }
  void make_directories(const std::string&) override {}
  std::vector<std::string> list_files(const std::string&) override { return {}; }
  void sync_folder(const std::string&) override {}

 private:
  class File final : public WritableFile {
   public:
    explicit File(std::vector<std::byte>& content) : content_(content) {}
    void append(std::span<const std::byte> bytes) override {
      content_.insert(content_.end(), bytes.begin(), bytes.end());
    }
    void sync() override {}

   private:
    std::vector<std::byte>& content_;
  };

  class Opened final : public ReadableFile {
   public:
    explicit Opened(std::vector<std::byte> content) : content_(std::move(content)) {}
    uint64_t size() const override { return content_.size(); }
    void read_at(uint64_t offset, std::span<std::byte> to) override {
      check<IoError>(offset + to.size() <= content_.size(), "the file ends early");
      std::copy_n(content_.begin() + static_cast<ptrdiff_t>(offset), to.size(), to.begin());
    }

   private:
    std::vector<std::byte> content_;
  };

  std::vector<std::byte> content_;
};

void allow_errors(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error&) {  // one clear line is what a user wants to see
  }
}

/// Parsers that do not say what their lines hold get these slots.
std::vector<SlotSpec> slots_for(const std::string& parser) {
  if (parser == "multislot" || parser == "slot_text")
    return {{"click", SlotKind::ids, 1},
            {"dense", SlotKind::floats, 2},
            {"1", SlotKind::ids, 0, EmptySlot::empty},
            {"2", SlotKind::ids, 1, EmptySlot::pad, 1000}};
  return {};
}

std::string spec_for(const std::string& parser) {
  return parser == "csv" ? "csv(columns=label:float;C1:id;C2:hash;x:float, header=1, empty=pad)"
                         : parser;
}

std::vector<std::string> seeds_for(const std::string& parser) {
  if (parser == "multislot") return {"1 1 2 0.5 -1e3 3 7 8 9 1 5\n", "1 0 2 0 0 0 1 999\r\n"};
  if (parser == "slot_text") return {"click:1 dense:0.1 dense:2 1:5 1:6 2:9\n"};
  if (parser == "libsvm") return {"1 1:0.5 7:1 9:-3e-2\n"};
  if (parser == "libffm") return {"0 0:11:1 1:22:0.5\n"};
  if (parser == "csv") return {"label,C1,C2,x\n1,17,x,0.5\n0,,\"a,b\",1e9\n"};
  std::string criteo = "1";
  for (int i = 0; i < 13; ++i) criteo += i % 3 == 0 ? "\t" : "\t" + std::to_string(i - 2);
  for (int i = 0; i < 26; ++i) criteo += i % 5 == 0 ? "\t" : "\t68fd1e64";
  return {criteo + "\n"};
}

void parse_all(const Parser& parser, std::span<const std::byte> bytes) {
  Lines lines(unpack(memory_stream({bytes.begin(), bytes.end()}, "fuzz")),
              {.block = 64, .longest_line = 4096});
  Columns columns(parser.slots());
  LineTally tally(1.0);
  while (parse_lines(lines, parser, columns.rows() + 16, columns, tally)) {
    if (columns.rows() > 1000) columns.clear();
  }
}

Target parser_target(const std::string& name) {
  // Settings that a format does not take are the target's fault, not the bytes'.
  std::shared_ptr<const Parser> parser = make_parser(spec_for(name), slots_for(name));
  return {[parser](auto bytes) { allow_errors([&] { parse_all(*parser, bytes); }); },
          seeds_for(name)};
}

/// The bytes unchanged, then with a matching checksum, without which readers stop early.
void also_with_checksum(std::span<const std::byte> bytes,
                        const std::function<void(std::span<const std::byte>)>& run) {
  run(bytes);
  ByteBuffer fitting;
  fitting.write(bytes.first(bytes.size() - std::min(bytes.size(), sizeof(uint64_t))));
  fitting.put(hash64(fitting.bytes()));
  run(fitting.bytes());
}

std::string saved_model_seed() {
  MemoryEnv env;
  save_model(env, "seed", {"program", {{"w", Tensor({2, 3})}, {"@step", Tensor({1}, DType::i64)}}});
  return string_of(env.content());
}

const ps::TableSpec kTable{.name = "rows", .dim = 3, .rule = "adagrad", .entry = "count_filter(2)"};

std::string sparse_table_seed() {
  const auto table = make_row_table(kTable);
  const std::vector<Key> keys = {1, 5, 1, 9, 5};
  ps::RowSums sums;
  ps::Ticket ticket;
  apply_rows(*table, keys, {}, std::vector<float>(keys.size() * kTable.dim, 1.0F), 1, sums, ticket);
  ByteBuffer out;
  save_table(*table, out);
  return string_of(out.bytes());
}

/// Two workers that wait for each other by way of a server.
std::string status_seed() {
  std::string text = "argosy status 1\nlauncher host=a pid=1 started=10 written=20 finished=0\n";
  for (const char* line : {"role=server index=0 doing=serving wait=worker:0-1:4.2:0-1:step%202",
                           "role=worker index=0 doing=fetching wait=server:0:4.2::exchange%209",
                           "role=worker index=1 doing=meeting since=4 wait=server:0:4.0::join"}) {
    const auto status = parse_status(std::string("status ") + line);
    text += fmt::format("process name={}%20{} pid=2 starts=1 up=9 heard=0.2\nstatus {}\n",
                        status->role, status->index, line);
  }
  return text + "process name=worker%202 pid=3 starts=2 up=1 ended=exit%20status%203 ago=1\n";
}

/// Two key sets, three tables of rows and a parameter.
ps::ServerShape small_shape() {
  std::vector<ps::TableSpec> tables = {
      {.name = "a", .dim = 1}, {.name = "b", .dim = 3}, {.name = "c", .dim = 2}};
  return {ps::place({{.name = "w", .elements = 6}}, std::move(tables), {0, 0, 1}, 1), 0};
}

InFrame frame_of(std::span<const std::byte> bytes) {
  auto payload = std::make_shared<Buffer>();
  payload->resize(bytes.size());
  std::copy(bytes.begin(), bytes.end(), payload->bytes().begin());
  return {.kind = FrameKind::exchange, .id = 1, .payload = std::move(payload)};
}

/// Pulls 2 and 1 keys, pushes the dense parameter and two lists.
std::string exchange_seed(uint32_t flags) {
  ByteBuffer out;
  out.put(ps::ExchangeHead{.sequence = 5, .flags = flags, .lists = 2});
  for (const uint64_t n : {3, 4, /* pull */ 2, 1, /* lists */ 1, 0, 2, 1}) out.put(n);
  const size_t keys = (flags & ps::ExchangeHead::kCarriesKeys) != 0 ? 7 : 3;
  for (Key key = 0; key < keys; ++key) out.put(key);
  const std::vector<float> floats(6 + (1 * 4) + (2 * 4 + 1 * 2), 0.5F);
  out.put_all(std::span<const float>(floats));
  return string_of(out.bytes());
}

void parse_exchanges(std::span<const std::byte> bytes) {
  static const ps::ServerShape shape = small_shape();
  const InFrame frame = frame_of(bytes);
  allow_errors([&] { ps::parse_exchange(frame.payload->bytes(), shape); });
  for (const size_t keys : {0, 1, 3}) {
    const std::vector<size_t> counts = {keys, keys + 1};
    allow_errors([&] { ps::parse_reply(frame.payload->bytes(), shape, keys == 1, counts); });
  }
}

void decode_greetings(std::span<const std::byte> bytes) {
  const InFrame frame = frame_of(bytes);
  allow_errors([&] { ps::decode_hello(frame); });
  allow_errors([&] { ps::decode_welcome(frame); });
  allow_errors([&] { ps::decode_pong(frame); });
  allow_errors([&] {
    const ps::Request request = ps::decode_request(frame);
    for (const auto& fields : {std::span<const std::byte>(request.fields), bytes}) {
      allow_errors([&] { ps::decode_fields<ps::verbs::Gather>(fields, "gather"); });
      allow_errors([&] { ps::decode_fields<ps::verbs::Load>(fields, "load"); });
      allow_errors([&] { ps::decode_fields<ps::verbs::WriteParameters>(fields, "write"); });
      allow_errors([&] { ps::decode_fields<ps::verbs::Gathered>(fields, "gathered"); });
      allow_errors([&] { ps::decode_fields<ps::verbs::ReadRows::Result>(fields, "rows"); });
    }
  });
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

const LogSegmentHeader kLogHeader{.segment = 1, .identity = "fuzz", .catalogue = {}};

/// A log of one segment is read, opened, written to and read again.
void open_segment(std::span<const std::byte> bytes) {
  SimulatedDisk disk;
  DiskEnv env(disk, "host");
  env.make_directories("log");
  env.create_file("log/0000000001.seg")->append(bytes);
  const auto visit = [](LogRecord& record) {
    while (record.next()) {
    }
  };
  allow_errors([&] {
    const auto log = open_log(env, {.folder = "log", .identity = "fuzz"}, visit);
    log->begin_record();
    log->add_frame(1, bytes);
    log->commit();
    read_log(env, "log", "fuzz", visit);
  });
}

/// A segment of frames whose sums fit; four bytes say what is in each.
void open_frames(std::span<const std::byte> bytes) {
  ByteBuffer segment;
  segment.write(encode_log_header(kLogHeader));
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    const auto at = [&](size_t i) { return static_cast<uint32_t>(bytes[i]); };
    const auto payload = bytes.first(std::min<size_t>(bytes.size(), at(3) % 48));
    LogFrameHeader header{.role = static_cast<LogRole>(at(0) % 7),
                          .length = at(3) == 255 ? 1U << 31 : static_cast<uint32_t>(payload.size()),
                          .segment = 1,
                          .record = at(1),
                          .index = at(2),
                          .payload_sum = hash64(payload)};
    seal_log_frame(header, log_seed(kLogHeader));
    segment.put(header);
    segment.write(payload);
  }
  open_segment(segment.bytes());
}

std::string segment_seed() {
  SimulatedDisk disk;
  DiskEnv env(disk, "host");
  const auto log = open_log(env, {.folder = "log", .identity = "fuzz"}, {});
  for (const char* text : {"one", "two"}) {
    log->begin_record();
    log->add_frame(1, bytes_of(text));
    log->commit();
  }
  log->seal();
  return string_of(env.read_file("log/0000000001.seg"));
}

std::string cut_part_seed() {
  MemoryEnv env;
  ps::write_cut_part(env, "fuzz",
                     {.placement = ps::place({{.name = "w", .elements = 6}}, {kTable}, {0}, 1),
                      .identity = "log",
                      .last_record = 3,
                      .mark = {.step = 2, .applied = {4}, .trained = {{1, 2, 2}}},
                      .rows = {7},
                      .segments = {{1, 400, 5}}});
  return string_of(env.content());
}

}  // namespace

std::map<std::string, Target> all_targets() {
  std::map<std::string, Target> targets;
  for (const std::string& name : parser_names())
    targets.emplace("parser_" + name, parser_target(name));
  targets["yaml"] = {
      [](auto bytes) {
        allow_errors([&] { parse_config(text_of(bytes), "models/rank/dnn/config.yaml"); });
      },
      {"runner:\n  epochs: 2\n  train_data_dir: data\n  print_interval: 10\nhyper_parameters:\n"
       "  fc_sizes: [400, 400]\n  optimizer: {class: Adam, learning_rate: 0.001}\n",
       "inputs: {dense: 13, slots: C1..C26, label: click}\ntables:\n  factors: {dim: 10}\n"
       "network:\n  emb: embedding(slots, table=factors)\n  logit: linear(emb, size=1)\n"
       "loss: logistic_loss(logit, label)\nmetrics: {auc: auc(sigmoid(logit), label)}\n"}};
  targets["program"] = {
      [](auto bytes) { allow_errors([&] { Program::parse(text_of(bytes), "fuzz"); }); },
      {"argosy program 1\ninput %0 x f32[-1,13]\nparam %1 fc.w f32[13,1] init=\"zeros\"\n"
       "%2 predict f32[-1,1] = linear(%0, %1) {activation=\"tanh\"}\noutput %2\n"}};
  const auto read_model = [](std::span<const std::byte> bytes) {
    MemoryEnv env(bytes);
    allow_errors([&] { load_model(env, "fuzz"); });
  };
  const auto read_table = [](std::span<const std::byte> bytes) {
    const auto table = make_row_table(kTable);
    ByteSource in(bytes, "fuzz");
    allow_errors([&] { load_table(*table, in); });
  };
  targets["saved_model"] = {[=](auto bytes) { also_with_checksum(bytes, read_model); },
                            {saved_model_seed()}};
  targets["sparse_table"] = {[=](auto bytes) { also_with_checksum(bytes, read_table); },
                             {sparse_table_seed()}};
  const auto read_part = [](std::span<const std::byte> bytes) {
    MemoryEnv env(bytes);
    allow_errors([&] { ps::read_cut_part(env, "fuzz", ps::cut_file_name(0)); });
  };
  targets["cut_part"] = {[=](auto bytes) { also_with_checksum(bytes, read_part); },
                         {cut_part_seed()}};
  targets["pickle"] = {
      [](auto bytes) { allow_errors([&] { read_pickled_arrays(bytes, "fuzz"); }); },
      {std::string("\x80\x02}(U\x01wcnumpy.core.numeric\n_frombuffer\n(C\x08") +
       std::string("12345678cnumpy\ndtype\nU\x02"
                   "f4\x85RK\x02\x85U\x01"
                   "CtRq\x01U\x01vh\x01u.")}};
  targets["call"] = {[](auto bytes) {
                       allow_errors([&] {
                         const Call call(text_of(bytes));
                         call.numbers();
                       });
                     },
                     {"uniform(-0.1, 0.1)", "adam(beta1=0.9, beta2=0.999)"}};
  constexpr uint32_t kPushAndPull =
      ps::ExchangeHead::kPushDense | ps::ExchangeHead::kPullDense | ps::ExchangeHead::kPullRows;
  targets["exchange"] = {
      parse_exchanges,
      {exchange_seed(kPushAndPull), exchange_seed(kPushAndPull | ps::ExchangeHead::kCarriesKeys)}};
  const auto seed = [](const auto& message) { return string_of(encode(message)); };
  targets["greetings"] = {
      decode_greetings,
      {seed(ps::Hello{.job = "job", .plan_hash = 7, .worker = 1, .workers = 2, .incarnation = 9}),
       seed(ps::Welcome{.server = 1, .applied = 2, .step = 3}),
       seed(ps::Pong{.received = 4, .applied = 3, .waits_for = "worker 1"}),
       seed(ps::request_of(ps::verbs::Load{"folder", {{"rows", "rows.1.0-of-1.rows"}}}))}};
  targets["log"] = {[](auto bytes) {
                      open_segment(bytes);
                      open_frames(bytes);
                    },
                    {segment_seed(), std::string("\1\1\0\3\2\1\1\0", 8)}};
  targets["status"] = {[](auto bytes) {
                         allow_errors([&] {
                           const std::vector<launch::StatusFile> files = {
                               launch::parse_status_file(text_of(bytes), "fuzz")};
                           constexpr double kNow = 1e9;
                           launch::status_text(files, kNow);
                           launch::status_json(files, kNow);
                         });
                       },
                       {status_seed()}};
  return targets;
}

}  // namespace argosy::fuzz
