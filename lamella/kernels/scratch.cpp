// Lent memory if there is enough, else the pool's.
#include "lamella/kernels/scratch.h"

#include "lamella/base/error.h"
#include "lamella/device/pool.h"

namespace lamella::kernels {

ScratchParts::ScratchParts(Scratch lent, int64_t bytes) {
  if (lent.size >= bytes) {
    next_ = static_cast<char*>(lent.data);
    left_ = lent.size;
    return;
  }
  own_ = cpu_pool().allocate(scratch_aligned(bytes), "kernel scratch");
  next_ = static_cast<char*>(own_->data());
  left_ = own_->size();
}

void* ScratchParts::take(int64_t bytes) {
  LAMELLA_CHECK(scratch_aligned(bytes) <= left_);
  char* part = next_;
  next_ += scratch_aligned(bytes);
  left_ -= scratch_aligned(bytes);
  return part;
}

}  // namespace lamella::kernels
