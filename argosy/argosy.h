#pragma once

/// Umbrella for people who write models and training programs.
#include "argosy/base/error.h"
#include "argosy/data/dataset.h"
#include "argosy/data/dataset_factory.h"
#include "argosy/graph/builder.h"
#include "argosy/graph/executor.h"
#include "argosy/job/fleet.h"
#include "argosy/nn/init.h"
#include "argosy/nn/layers.h"
#include "argosy/samples/generate.h"
#include "argosy/samples/samples.h"
#include "argosy/tensor/tensor.h"
#include "argosy/train/predictor.h"
#include "argosy/train/train_from_dataset.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"
