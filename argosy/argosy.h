#pragma once

/// Umbrella for people who write models and training programs.
#include "argosy/base/error.h"
#include "argosy/data/dataset.h"
#include "argosy/data/dataset_factory.h"
#include "argosy/data/generate.h"
#include "argosy/data/samples.h"
#include "argosy/graph/builder.h"
#include "argosy/graph/executor.h"
#include "argosy/net/env.h"
#include "argosy/nn/init.h"
#include "argosy/nn/layers.h"
#include "argosy/tensor/tensor.h"
#include "argosy/train/fleet.h"
#include "argosy/train/predictor.h"
#include "argosy/train/train_from_dataset.h"
#include "argosy/train/trainer.h"
