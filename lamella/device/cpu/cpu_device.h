// The host CPU as a device: memory from cpu_pool(), work done when issued.
#pragma once

#include "lamella/device/device.h"

namespace lamella {

LAMELLA_API Device& cpu_device();

}  // namespace lamella
