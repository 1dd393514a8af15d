#include "argosy/train/session.h"

namespace argosy {

std::vector<Tensor> Session::run(const FedByName& feeds, std::span<const VarId> fetch,
                                 ps::Purpose purpose) {
  batcher_.fill(feeds, batch_);
  std::vector<Tensor> values = purpose == ps::Purpose::training ? trainer_.step(batch_, fetch)
                                                                : trainer_.infer(batch_, fetch);
  for (Tensor& value : values) value = value.clone();
  return values;
}

}  // namespace argosy
