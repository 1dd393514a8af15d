#include "argosy/train/saved_cut.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "argosy/base/error.h"
#include "argosy/modes/dense_pieces.h"
#include "argosy/ps/cut.h"
#include "argosy/ps/rule.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

/// Parameters and their optimizer state, put together from the slices of the servers.
class WholeParameters {
 public:
  WholeParameters(Env& env, const std::string& dir, const Manifest& manifest)
      : env_(env), dir_(dir), manifest_(manifest) {
    for (const ps::SavedTable& saved : manifest.cuts) add(saved);
    check<DataError>(servers_ == manifest.cuts.size(), manifest_path(dir), ": has the parts of ",
                     manifest.cuts.size(), " servers, expected ", servers_);
  }

  void put_into(std::vector<NamedTensor>& tensors) {
    for (auto& [name, value] : wholes_) tensors.push_back({name, reshaped(name, value)});
    Tensor counter({1}, DType::i64);
    counter.as<int64_t>()[0] = static_cast<int64_t>(step_);
    tensors.push_back({"@step", counter});
  }

 private:
  void add(const ps::SavedTable& saved) {
    check_table_file(env_, dir_, saved);
    const ps::CutPart part = ps::read_cut_part(env_, dir_, saved.file);
    const std::string path = dir_ + "/" + saved.file;
    const ps::Placement& placement = part.placement;
    const uint64_t plan = placement.hash();
    if (parts_++ == 0) {
      plan_ = plan;
      servers_ = placement.servers;
    }
    check<DataError>(plan == plan_, path, ": is of another plan than the part before it");
    step_ = std::max(step_, part.mark.step);
    const std::vector<float> all = ps::read_cut_parameters(env_, dir_, saved.file);
    std::span<const float> values = all;
    for (const DensePiece& piece : dense_pieces(placement, part.index)) {
      if (piece.size == 0) continue;
      const ps::ParameterSpec& spec = placement.parameters[piece.parameter];
      const size_t size =
          piece.is_state ? ps::make_rule(spec.rule)->state_size(spec.elements) : spec.elements;
      check<DataError>(piece.size <= values.size() && piece.begin + piece.size <= size, path,
                       ": has too few values of '", spec.name, "'");
      Tensor& whole = wholes_.try_emplace(piece.name(placement), Tensor()).first->second;
      if (whole.numel() == 0) whole = Tensor(Shape{static_cast<int64_t>(size)});
      std::ranges::copy(values.first(piece.size),
                        whole.as<float>().begin() + static_cast<std::ptrdiff_t>(piece.begin));
      values = values.subspan(piece.size);
    }
  }

  /// As the model has it; optimizer state is flat.
  Tensor reshaped(const std::string& name, const Tensor& value) const {
    const auto found = std::ranges::find(manifest_.shapes, name, &Manifest::ParameterShape::name);
    if (found == manifest_.shapes.end()) return value;
    Shape shape;
    for (const uint64_t size : found->sizes) shape.push_back(static_cast<int64_t>(size));
    check<DataError>(shape.numel() == value.numel(), manifest_path(dir_), ": '", name, "' is ",
                     shape, ", its parts hold ", value.numel(), " values");
    return value.reshape(shape);
  }

  Env& env_;
  const std::string& dir_;
  const Manifest& manifest_;
  std::map<std::string, Tensor> wholes_;  // "w" or "w@state"
  size_t parts_ = 0, servers_ = 0;
  uint64_t plan_ = 0, step_ = 0;
};

}  // namespace

void save_cut(Env& env, const std::string& dir, const SavedCut& cut, const ResumePoint& resume,
              uint64_t number) {
  Manifest manifest;
  manifest.resume = resume;
  manifest.generation = number;
  manifest.tables = cut.tables;
  manifest.cuts = cut.parts;
  for (const ps::ServerMark& mark : cut.marks) manifest.marks.push_back(mark.text());
  for (const auto& [name, shape] : cut.shapes)
    manifest.shapes.push_back({name, {shape.begin(), shape.end()}});
  save_model(env, manifest_path(dir), {manifest.text(), cut.states});
  const auto parent = std::filesystem::path(dir).parent_path();
  env.sync_folder(parent.empty() ? "." : parent.string());
}

CheckpointContent read_checkpoint(Env& env, const std::string& dir) {
  const std::string path = manifest_path(dir);
  SavedModel saved = load_model(env, path);
  CheckpointContent content{Manifest::parse(saved.program, path), std::move(saved.tensors)};
  if (!content.manifest.cuts.empty())
    WholeParameters(env, dir, content.manifest).put_into(content.tensors);
  return content;
}

}  // namespace argosy
