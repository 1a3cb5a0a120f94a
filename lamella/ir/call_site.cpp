// The thread's call site.
#include "lamella/ir/call_site.h"

#include <utility>

namespace lamella {

namespace {

thread_local SourceLocation call_site;
thread_local bool at_start = false;

}  // namespace

const SourceLocation& current_call_site() {
  return call_site;
}

bool take_call_site_start() {
  return std::exchange(at_start, false);
}

CallSiteScope::CallSiteScope(SourceLocation location) : outer_(call_site) {
  if (!outer_.known()) at_start = location.known();
  call_site = location;
}

CallSiteScope::~CallSiteScope() {
  call_site = outer_;
  if (!outer_.known()) at_start = false;
}

}  // namespace lamella
