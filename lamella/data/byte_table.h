// A chain of pointwise transforms of byte images, looked up instead of computed.
//
// An element of such an image has 256 values, so the chain is applied once to all 256 of each
// channel, and images are then one table look-up an element. The bits are the chain's own.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lamella/data/transforms/transform.h"

namespace lamella::data {

class ByteTable {
 public:
  // The transforms must outlive the table.
  explicit ByteTable(std::vector<const BatchTransform*> chain);

  // The chain's result for uint8 images [batch, height, width, channels]; nothing if the chain or
  // the images are of another kind. Called by several threads at once.
  std::optional<Array> apply(const Array& images) const;

 private:
  struct Entries;
  std::shared_ptr<const Entries> entries_for(int64_t channels) const;
  Array tabulate(int64_t channels) const;

  std::vector<const BatchTransform*> chain_;
  std::optional<ChannelAxis> result_channels_;  // nothing: the chain is not pointwise
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Entries> entries_;  // for the channels seen last
};

}  // namespace lamella::data
