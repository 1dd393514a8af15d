#include "argosy/ps/verbs.h"

#include "argosy/base/error.h"

namespace argosy::ps {

std::vector<std::byte> encode(const Request& request) {
  ByteBuffer out;
  out.put_text(request.verb);
  out.put_all(std::span<const std::byte>(request.fields));
  return {out.bytes().begin(), out.bytes().end()};
}

Request decode_request(const InFrame& frame) {
  constexpr size_t kMaxName = 256;
  ByteSource in(frame.payload->bytes(), "control");
  Request request{.verb = in.get_text()};
  check<DataError>(request.verb.size() <= kMaxName, "control: a verb of ", request.verb.size(),
                   " bytes, expected at most ", kMaxName);
  const auto rest = in.take(in.left());
  request.fields.assign(rest.begin(), rest.end());
  return request;
}

}  // namespace argosy::ps
