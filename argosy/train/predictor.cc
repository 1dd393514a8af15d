#include "argosy/train/predictor.h"

#include "argosy/train/saved_model.h"

namespace argosy {

Predictor::Predictor(Env& env, const std::string& dir)
    : Predictor(load_model(env, dir + "/inference.argosy"), dir + "/inference.argosy") {}

Predictor::Predictor(SavedModel model, const std::string& path)
    : executor_(Program::parse(model.program, path)) {
  for (NamedTensor& tensor : model.tensors)
    values_.emplace(std::move(tensor.name), std::move(tensor.value));
}

Feeds Predictor::run(const Feeds& inputs) {
  for (const auto& [name, value] : inputs) values_.insert_or_assign(name, value);
  executor_.run(values_);
  Feeds outputs;
  for (VarId id : program().outputs) outputs.emplace(program().var(id).name, executor_.value(id));
  return outputs;
}

}  // namespace argosy
