// How much work a step of an executable is, and how it is shared among its operations.
#pragma once

#include "lamella/runtime/instance.h"
#include "lamella/runtime/launch_listener.h"

namespace lamella {

// The work of steps that run as one launch, for the sizes of an instance. Parts share by the
// floating-point operations their operators declare; where none declares any, equally.
LAMELLA_API LaunchWork work_of(std::span<const Step> steps, const Instance& sized,
                               const Instance::Batch& batch, std::span<const int64_t> bindings);

}  // namespace lamella
