#include "argosy/ps/ps_metrics.h"

#include "argosy/ps/exchange_job.h"

namespace argosy::ps {

ServerMetrics::ServerMetrics(Metrics& metrics)
    : exchanges(metrics.counter({"argosy_server_exchanges_total", "Exchanges that were applied"})),
      rows_pulled(metrics.counter({"argosy_server_rows_pulled_total", "Rows sent to workers"})),
      rows_pushed(
          metrics.counter({"argosy_server_rows_pushed_total", "Gradients of rows from workers"})),
      received(metrics.counter({"argosy_server_received_bytes_total", "Bytes of exchanges"})),
      sent(metrics.counter({"argosy_server_sent_bytes_total", "Bytes of answers to exchanges"})) {}

void ServerMetrics::count(const ServerShape& shape, const TakenExchange& exchange) {
  uint64_t pulled = 0, pushed = 0;
  for (const size_t set : shape.sets) {
    if (!exchange.view.pull.empty()) pulled += exchange.view.pull[set].size();
    if (exchange.applies)
      for (const ExchangeView::List& list : exchange.view.lists) pushed += list.counts[set];
  }
  exchanges.add(exchange.applies ? 1 : 0);
  rows_pulled.add(pulled);
  rows_pushed.add(pushed);
  received.add(exchange.frame.payload->size());
  sent.add(exchange.reply->size());
}

ClientMetrics::ClientMetrics(Metrics& metrics)
    : exchanges(metrics.counter(
          {"argosy_client_exchanges_total", "Exchanges with all servers that were begun"})),
      sent(metrics.counter({"argosy_client_sent_bytes_total", "Bytes of exchanges"})),
      received(metrics.counter(
          {"argosy_client_received_bytes_total", "Bytes of answers to exchanges"})) {}

}  // namespace argosy::ps
