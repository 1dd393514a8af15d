#pragma once

#include "argosy/data/batch.h"
#include "argosy/data/layout.h"

namespace argosy {

/// Fills the side columns of a batch with keys, indices and the feeds that the layout names. Throws
/// ConfigError for a feed that is missing or does not have one number per instance.
void fill_key_columns(const BatchLayout& layout, Batch& batch);

}  // namespace argosy
