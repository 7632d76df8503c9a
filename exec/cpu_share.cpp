#include "exec/cpu_share.hpp"

#include <sched.h>

namespace nebula {

void bind_to(const CpuShare& share) {
  cpu_set_t usable;
  if (share.count <= 0 || sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  if (share.claimed > CPU_COUNT(&usable)) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  int number = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const bool own = number >= share.first && number < share.first + share.count;
    if (own || number >= share.claimed) CPU_SET(cpu, &chosen);
    ++number;
  }
  // A refusal costs speed only.
  sched_setaffinity(0, sizeof chosen, &chosen);
}

}  // namespace nebula
