#pragma once

namespace nebula {

/// Which of a machine's CPUs a process has to itself: `count` of them from number `first` on, when
/// all processes together claim the first `claimed`.
struct CpuShare {
  int first = 0;
  int count = 0;
  int claimed = 0;
};

/// Binds this process and its later threads to its share and to the CPUs that nobody claims.
/// Without it the kernel lets one stage's I/O threads interrupt another's layers, and at times puts
/// two stages on one CPU while another idles. Does nothing for a count of 0 or when the process may
/// not use as many CPUs as are claimed.
void bind_to(const CpuShare& share);

}  // namespace nebula
