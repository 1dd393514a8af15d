// lr: logistic regression, a weight for each id and for each dense feature.
#include "argosy/zoo/model.h"

namespace argosy::models {

ModelOutputs lr(const Inputs& in, const Hyper&) { return click_outputs(in, first_order(in)); }

}  // namespace argosy::models
