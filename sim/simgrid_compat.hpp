#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

// What SimGrid 3.32 (Debian 12) and 4.0 (Debian 13) call differently.
namespace nebula::simgrid_compat {

namespace s4u = simgrid::s4u;

#if SIMGRID_VERSION >= 40000
constexpr const char* timing_precision = "precision/timing";
constexpr const char* amount_precision = "precision/work-amount";
#else
constexpr const char* timing_precision = "surf/precision";
constexpr const char* amount_precision = "maxmin/precision";
#endif

inline s4u::NetZone* add_root_zone([[maybe_unused]] s4u::Engine& engine, const std::string& name) {
#if SIMGRID_VERSION >= 40000
  return engine.get_netzone_root()->add_netzone_full(name);
#else
  return s4u::create_full_zone(name);
#endif
}

inline s4u::Host* add_host(s4u::NetZone& zone, const std::string& name, double speed) {
#if SIMGRID_VERSION >= 40000
  return zone.add_host(name, speed);
#else
  return zone.create_host(name, speed);
#endif
}

inline s4u::Link* add_link(s4u::NetZone& zone, const std::string& name, double bandwidth) {
#if SIMGRID_VERSION >= 40000
  return zone.add_link(name, bandwidth);
#else
  return zone.create_link(name, bandwidth);
#endif
}

/// One way.
inline void add_route(s4u::NetZone& zone, s4u::Host* from, s4u::Host* to, s4u::Link* first,
                      s4u::Link* second) {
  const std::vector<s4u::LinkInRoute> links{s4u::LinkInRoute(first), s4u::LinkInRoute(second)};
#if SIMGRID_VERSION >= 40000
  zone.add_route(from, to, links, false);
#else
  zone.add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
#endif
}

inline s4u::ActorPtr add_actor([[maybe_unused]] s4u::Engine& engine, const std::string& name,
                               s4u::Host* host, const std::function<void()>& code) {
#if SIMGRID_VERSION >= 40000
  return engine.add_actor(name, host, code);
#else
  return s4u::Actor::create(name, host, code);
#endif
}

/// Starts moving `bytes` from one host to the other. wait() on the result.
///
/// 3.32 ignores set_rate() and set_remaining() of such a transfer: limits must be links of the
/// route, sizes whole numbers.
inline s4u::CommPtr start_transfer(s4u::Host* from, s4u::Host* to, std::uint64_t bytes) {
  s4u::CommPtr comm = s4u::Comm::sendto_init();
  comm->set_payload_size(bytes);
  comm->set_source(from);
  // 3.32 starts it here; later versions wait for start().
  comm->set_destination(to);
  if (comm->get_state() == s4u::Activity::State::INITED ||
      comm->get_state() == s4u::Activity::State::STARTING) {
    comm->start();
  }
  return comm;
}

}  // namespace nebula::simgrid_compat
