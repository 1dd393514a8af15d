#pragma once

#include "argosy/watch/metrics.h"

namespace argosy::ps {

struct ServerShape;
struct TakenExchange;

/// Counters of a server, updated per exchange.
struct ServerMetrics {
  explicit ServerMetrics(Metrics& metrics);
  /// Counts a finished exchange, whether it was applied now or before.
  void count(const ServerShape& shape, const TakenExchange& exchange);

  Counter& exchanges;  // applied; retries do not count
  Counter &rows_pulled, &rows_pushed;
  Counter &received, &sent;  // bytes of exchanges and of replies
};

/// Counters of a worker, over all its servers.
struct ClientMetrics {
  explicit ClientMetrics(Metrics& metrics);

  Counter& exchanges;
  Counter &sent, &received;  // bytes of exchanges (retries included) and of replies
};

}  // namespace argosy::ps
