#include "argosy/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "argosy/base/error.h"
#include "argosy/modes/dense_pieces.h"
#include "argosy/ps/server.h"
#include "argosy/train/saved_cut.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

/// From the existing checkpoint; nothing if there is none, or none that can be read.
Manifest previous_manifest(Env& env, const std::string& dir) {
  if (!env.file_exists(manifest_path(dir))) return {};
  try {
    return Manifest::parse(load_model(env, manifest_path(dir)).program, manifest_path(dir));
  } catch (const Error&) {
    return {};  // it is about to be replaced
  }
}

/// A checkpoint in the shape of a saved model.
struct Loaded {
  Manifest manifest;
  SavedModel saved;
};
Loaded load_content(Env& env, const std::string& dir) {
  CheckpointContent content = read_checkpoint(env, dir);
  return {std::move(content.manifest), {"", std::move(content.tensors)}};
}

uint64_t step_of(const SavedModel& saved, const std::string& path) {
  const auto found = std::ranges::find(saved.tensors, "@step", &NamedTensor::name);
  check<DataError>(found != saved.tensors.end() && found->value.numel() == 1, path,
                   ": has no '@step'");
  return static_cast<uint64_t>(found->value.as<int64_t>()[0]);
}

/// Puts what was saved over a server's parameters. Optimizer state that was not saved, as in geo
/// mode, stays as it is.
void take_dense(const SavedModel& saved, const std::string& path,
                const std::vector<DensePiece>& pieces, const ps::Placement& placement,
                std::span<float> dense) {
  float* to = dense.data();
  for (const DensePiece& piece : pieces) {
    const std::string name = piece.name(placement);
    const auto found = std::ranges::find(saved.tensors, name, &NamedTensor::name);
    const bool there = found != saved.tensors.end();
    check<DataError>(there || piece.is_state, path, ": has no '", name, "', which the model needs");
    if (there) {
      const auto floats = found->value.as<float>();
      check<DataError>(
          piece.begin + piece.size <= floats.size() &&
              (piece.is_state || floats.size() == placement.parameters[piece.parameter].elements),
          path, ": '", name, "' has ", floats.size(), " values, which the model's do not fit");
      std::copy_n(floats.data() + piece.begin, piece.size, to);
    }
    to += piece.size;
  }
}

}  // namespace

void save_checkpoint(Env& env, const std::string& dir, TableStore& store,
                     const ResumePoint& resume) {
  env.make_directories(dir);
  const Manifest before = previous_manifest(env, dir);
  // A save that was killed between its last two steps has left the tables it replaced.
  for (const std::string& old : before.replaced) env.remove_file(fmt::format("{}/{}", dir, old));
  Manifest manifest;
  manifest.resume = resume;
  manifest.generation = before.generation + 1;
  SavedTables saved = store.save(env, dir, manifest.generation);
  manifest.tables = std::move(saved.files);
  manifest.marks = std::move(saved.marks);
  for (const ps::SavedTable& old : before.tables) manifest.replaced.push_back(old.file);
  save_model(env, manifest_path(dir), {manifest.text(), store.persistables()});
  for (const ps::SavedTable& old : before.tables) env.remove_file(dir + "/" + old.file);
}

ResumePoint load_checkpoint(Env& env, const std::string& dir, TableStore& store) {
  const std::string path = manifest_path(dir);
  const Loaded loaded = load_content(env, dir);
  const Manifest& manifest = loaded.manifest;
  const SavedModel& saved = loaded.saved;
  const std::vector<NamedTensor> persistables = store.persistables();
  // Parameters saved without optimizer state, as in geo mode, get a fresh one.
  std::vector<NamedTensor> expected;
  std::ranges::copy_if(persistables, std::back_inserter(expected), [&](const NamedTensor& tensor) {
    return !tensor.name.ends_with("@state") ||
           std::ranges::find(saved.tensors, tensor.name, &NamedTensor::name) != saved.tensors.end();
  });
  check_fits(saved, path, expected);
  const std::vector<std::string> wanted = store.sparse_tables();
  std::set<std::string> held;
  for (const ps::SavedTable& table : manifest.tables) held.insert(table.table);
  check<DataError>(held.size() == wanted.size(), path, ": holds ", held.size(),
                   " sparse tables, the model has ", wanted.size());
  for (const std::string& name : wanted)
    check<DataError>(held.contains(name), path, ": has no table '", name,
                     "', which the model needs");
  store.load(env, dir, manifest.tables);
  copy_values(saved, expected);
  store.restore(persistables);
  return manifest.resume;
}

uint64_t checkpoint_generation(Env& env, const std::string& dir) {
  return previous_manifest(env, dir).generation;
}

SavedPart load_part(Env& env, const std::string& dir, const ps::Placement& placement,
                    uint32_t index, ps::Server& server) {
  const std::string path = manifest_path(dir);
  const Loaded loaded = load_content(env, dir);
  const Manifest& manifest = loaded.manifest;
  const SavedModel& saved = loaded.saved;
  SavedPart part{.resume = manifest.resume, .mark = {}};
  if (manifest.marks.size() == placement.servers)
    part.mark = ps::ServerMark::parse(manifest.marks[index]);
  std::vector<float> dense = server.shard().parameters();
  take_dense(saved, path, dense_pieces(placement, index), placement, dense);
  server.shard().load(env, dir, manifest.tables);
  server.shard().set_parameters(dense);
  server.set_step(part.mark ? part.mark->step : step_of(saved, path));
  return part;
}

void load_states(Env& env, const std::string& dir, const std::vector<NamedTensor>& states) {
  const std::string path = manifest_path(dir);
  SavedModel saved = load_model(env, path);  // also of a cut, whose parameters are elsewhere
  std::erase_if(saved.tensors, [&](const NamedTensor& tensor) {
    return std::ranges::find(states, tensor.name, &NamedTensor::name) == states.end();
  });
  check_fits(saved, path, states);
  copy_values(saved, states);
}

}  // namespace argosy
