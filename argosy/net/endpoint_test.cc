#include "argosy/net/endpoint.h"

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"

namespace argosy {
namespace {

TEST(Endpoint, ReadsNamesAndAddressesOfBothKinds) {
  EXPECT_EQ(parse_endpoint("10.0.0.1:7000"), (Endpoint{"10.0.0.1", 7000}));
  EXPECT_EQ(parse_endpoint("[::1]:65535"), (Endpoint{"::1", 65535}));
  EXPECT_EQ(parse_endpoint("[fe80::1%eth0]:1"), (Endpoint{"fe80::1%eth0", 1}));
  EXPECT_EQ(parse_endpoint("ps-0.job_1.svc:0"), (Endpoint{"ps-0.job_1.svc", 0}));
}

TEST(Endpoint, TextIsWhatParseReads) {
  for (const char* text : {"10.0.0.1:7000", "[::1]:65535", "localhost:0"})
    EXPECT_EQ(parse_endpoint(text).text(), text);
}

TEST(Endpoint, RefusesWhatIsNoneAndQuotesIt) {
  for (const char* text :
       {"",         "host",     ":7000",       "host:",   "host:x",   "host:65536", "host:-1",
        "host:70 ", "a b:1",    "256.0.0.1:1", "1.2.3:4", "::1:7000", "[::1]",      "[::1:7000",
        "[]:1",     "[host]:1", "[:1",         "-host:1", "host/x:1", "[::1]x:1"}) {
    const std::string message = message_of<ConfigError>([&] { parse_endpoint(text); });
    EXPECT_EQ(message.rfind("endpoint '" + std::string(text) + "': expected ", 0), 0U) << message;
  }
}

TEST(Endpoint, ListsAreSeparatedByCommas) {
  EXPECT_EQ(parse_endpoints("a:1,[::1]:2"), (std::vector<Endpoint>{{"a", 1}, {"::1", 2}}));
  EXPECT_EQ(message_of<ConfigError>([] { parse_endpoints("a:1,,b:2"); }),
            "endpoints 'a:1,,b:2': number 2 is empty, expected HOST:PORT");
  EXPECT_EQ(message_of<ConfigError>([] { parse_endpoints(""); }),
            "endpoints '': number 1 is empty, expected HOST:PORT");
  EXPECT_EQ(message_of<ConfigError>([] { parse_endpoints("a:1,"); }),
            "endpoints 'a:1,': number 2 is empty, expected HOST:PORT");
  EXPECT_EQ(message_of<ConfigError>([] { parse_endpoints("a:1,b:2,a:1"); }),
            "endpoints 'a:1,b:2,a:1': a:1 comes twice, expected each once");
}

}  // namespace
}  // namespace argosy
