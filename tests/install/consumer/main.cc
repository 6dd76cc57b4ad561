// A program of somebody who only has the installed weir.
#include <weir/weir.h>

#include <cstdio>

int main() {
  const weir::Output three = weir::Constant(3.0f);
  const weir::Output four = weir::Constant(4.0f);
  weir::Session session;
  const auto total = session.Run(three + four);
  if (!total.ok()) {
    std::fprintf(stderr, "%s\n", total.status().ToString().c_str());
    return 1;
  }
  std::printf("%g\n", static_cast<double>(total->scalar<float>()));
}
