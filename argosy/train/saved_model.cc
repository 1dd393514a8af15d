#include "argosy/train/saved_model.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "argosy/base/bytes.h"
#include "argosy/base/hash.h"
#include "argosy/tensor/finite.h"

namespace argosy {
namespace {

constexpr std::array<char, 8> kMagic{'A', 'R', 'G', 'O', 'S', 'Y', 'M', '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumBytes = sizeof(uint64_t);

std::string inference_path(const std::string& dir) { return dir + "/inference.argosy"; }

NamedTensor read_tensor(ByteSource& in) {
  std::string name = in.get_text();
  const auto dtype_name = in.get_text();
  const auto rank = in.get<uint32_t>();
  check<DataError>(rank <= Shape::kMaxRank, in.what(), ": '", name, "' has ", rank, " axes");
  Shape shape;
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    const auto dim = in.get<uint64_t>();
    check<DataError>(dim <= in.left() + 1 && (count *= std::max<uint64_t>(dim, 1)) <= in.left() + 1,
                     in.what(), ": '", name, "' is larger than the file");
    shape.push_back(static_cast<int64_t>(dim));
  }
  Tensor value = Tensor::uninitialized(shape, parse_dtype(dtype_name));
  const auto bytes = in.take(value.bytes());
  std::ranges::copy(bytes, value.data());
  return {std::move(name), std::move(value)};
}

std::vector<VarId> find_all(const Program& program, const std::vector<std::string>& names) {
  check<ConfigError>(!names.empty(), "name at least one output to export");
  std::vector<VarId> ids;
  for (const std::string& name : names) {
    ids.push_back(program.find(name));
    check<ConfigError>(static_cast<bool>(ids.back()), "the program has no variable '", name,
                       "' to export");
  }
  return ids;
}

}  // namespace

void save_model(Env& env, const std::string& path, const SavedModel& model) {
  for (const auto& [name, value] : model.tensors)
    check<DataError>(all_finite(value), path, ": not saved, '", name, "' ", value.dtype(),
                     value.shape(), " holds NaN or infinity");
  ByteBuffer out;
  out.put(kMagic);
  out.put(kVersion);
  out.put_text(model.program);
  out.put(static_cast<uint32_t>(model.tensors.size()));
  for (const auto& [name, value] : model.tensors) {
    out.put_text(name);
    out.put_text(argosy::name(value.dtype()));
    out.put(static_cast<uint32_t>(value.shape().rank()));
    for (int64_t dim : value.shape()) out.put(static_cast<uint64_t>(dim));
    out.write({value.data(), value.bytes()});
  }
  out.put(hash64(out.bytes()));
  write_file_atomically(env, path, out.bytes());
}

SavedModel load_model(Env& env, const std::string& path) {
  const std::vector<std::byte> bytes = env.read_file(path);
  check<DataError>(bytes.size() >= kMagic.size() + kChecksumBytes &&
                       std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0,
                   path, ": not a saved model of argosy");
  const auto content = std::span(bytes).first(bytes.size() - kChecksumBytes);
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + content.size(), kChecksumBytes);
  check<DataError>(hash64(content) == checksum, path,
                   ": damaged or truncated, its checksum does not fit");

  ByteSource in(content.subspan(kMagic.size()), path);
  const auto version = in.get<uint32_t>();
  check<DataError>(version == kVersion, path, ": version ", version,
                   ", this program reads version ", kVersion);
  SavedModel model;
  model.program = in.get_text();
  const auto count = in.get<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) model.tensors.push_back(read_tensor(in));
  check<DataError>(in.left() == 0, path, ": ", in.left(), " bytes too many");
  return model;
}

void check_fits(const SavedModel& saved, const std::string& path,
                const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, value] : tensors) {
    const auto found = std::ranges::find(saved.tensors, name, &NamedTensor::name);
    check<DataError>(found != saved.tensors.end(), path, ": has no '", name,
                     "', which the model needs");
    check<DataError>(found->value.shape() == value.shape() && found->value.dtype() == value.dtype(),
                     path, ": '", name, "' is ", found->value.dtype(), found->value.shape(),
                     ", the model needs ", value.dtype(), value.shape());
  }
  check<DataError>(saved.tensors.size() == tensors.size(), path, ": holds ", saved.tensors.size(),
                   " tensors, the model has ", tensors.size());
}

void copy_values(const SavedModel& saved, const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, value] : tensors) {
    Tensor target = value;  // shares the live memory
    const Tensor& source = std::ranges::find(saved.tensors, name, &NamedTensor::name)->value;
    std::copy_n(source.data(), target.bytes(), target.data());
  }
}

void save_inference(Env& env, const std::string& dir, const Program& program,
                    const std::vector<std::string>& outputs, TableStore& store) {
  const Program inference = program.for_inference(find_all(program, outputs));
  const std::vector<NamedTensor> persistables = store.persistables();
  SavedModel model{inference.text(), {}};
  for (const VarDesc& desc : inference.vars) {
    if (desc.kind == VarKind::temp || desc.kind == VarKind::input) continue;
    if (desc.kind == VarKind::rows) {
      const TableRows table = store.rows(desc.name);
      Tensor ids({static_cast<int64_t>(table.keys.size())}, DType::i64);
      std::ranges::copy(table.keys, ids.as<int64_t>().begin());
      model.tensors.push_back({desc.name, table.rows});
      model.tensors.push_back({desc.name + "@keys", ids});
      continue;
    }
    const auto found = std::ranges::find(persistables, desc.name, &NamedTensor::name);
    check<ConfigError>(found != persistables.end(), "no value for '", desc.name, "' to export");
    model.tensors.push_back(*found);
  }
  env.make_directories(dir);
  save_model(env, inference_path(dir), model);
}

}  // namespace argosy
