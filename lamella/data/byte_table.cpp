// Building and applying tables of pointwise chains.
#include "lamella/data/byte_table.h"

#include <algorithm>

namespace lamella::data {

namespace {

constexpr int64_t kValues = 256;
// A table beyond this would not stay in the cache; images have 1, 3 or 4 channels.
constexpr int64_t kMostChannels = 16;

// An image of height 256, width 1 that has every value in every channel.
Array all_values(int64_t channels) {
  Array image(DType::UInt8, {1, kValues, 1, channels});
  auto elements = image.writable_as<uint8_t>();
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<uint8_t>(i / static_cast<size_t>(channels));
  }
  return image;
}

// Elements of any dtype of `Size` bytes. `table` holds the results of one channel; the bytes lie
// `stride` apart in `from`, the results densely in `to`.
template <size_t Size>
void look_up(const uint8_t* from, size_t stride, const std::byte* table, std::byte* to,
             size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to + i * Size, table + size_t{from[i * stride]} * Size, Size);
  }
}

template <size_t Size>
void look_up_images(const Array& images, const Array& tables, ChannelAxis result, std::byte* to) {
  const auto channels = static_cast<size_t>(images.sizes()[3]);
  const auto pixels = static_cast<size_t>(images.sizes()[1] * images.sizes()[2]);
  const auto* from = reinterpret_cast<const uint8_t*>(images.data());
  constexpr size_t kTable = kValues * Size;
  for (int64_t image = 0; image < images.sizes()[0]; ++image) {
    if (result == ChannelAxis::First || channels == 1) {
      for (size_t c = 0; c < channels; ++c) {
        look_up<Size>(from + c, channels, tables.data() + c * kTable, to + c * pixels * Size,
                      pixels);
      }
    } else {
      for (size_t i = 0; i < pixels * channels; i += channels) {
        for (size_t c = 0; c < channels; ++c) {
          const std::byte* table = tables.data() + c * kTable;
          std::memcpy(to + (i + c) * Size, table + size_t{from[i + c]} * Size, Size);
        }
      }
    }
    from += pixels * channels;
    to += pixels * channels * Size;
  }
}

}  // namespace

struct ByteTable::Entries {
  int64_t channels;
  std::optional<Array> results;  // [channels, 256]; nothing: the chain refuses such images
};

ByteTable::ByteTable(std::vector<const BatchTransform*> chain)
    : chain_(std::move(chain)), result_channels_(ChannelAxis::Last) {
  for (const BatchTransform* transform : chain_) {
    if (result_channels_) result_channels_ = transform->pointwise(*result_channels_);
  }
}

std::shared_ptr<const ByteTable::Entries> ByteTable::entries_for(int64_t channels) const {
  std::lock_guard lock(mutex_);
  if (entries_ && entries_->channels == channels) return entries_;
  auto made = std::make_shared<Entries>(Entries{channels, std::nullopt});
  try {
    made->results = tabulate(channels);
  } catch (const Error&) {
    made->results.reset();  // the chain itself will say it, with the sizes of the images at hand
  }
  entries_ = made;
  return made;
}

Array ByteTable::tabulate(int64_t channels) const {
  Array results = all_values(channels);
  for (const BatchTransform* transform : chain_) results = transform->apply_batch(results);
  if (result_channels_ == ChannelAxis::First) return results.reshaped({channels, kValues});
  Array turned(results.dtype(), {channels, kValues});
  const auto size = static_cast<size_t>(size_of(results.dtype()));
  const auto wide = static_cast<size_t>(channels);
  for (size_t i = 0; i < wide * kValues; ++i) {
    std::memcpy(turned.writable() + (i % wide * kValues + i / wide) * size,
                results.data() + i * size, size);
  }
  return turned;
}

std::optional<Array> ByteTable::apply(const Array& images) const {
  if (!result_channels_ || images.dtype() != DType::UInt8 || images.rank() != 4) {
    return std::nullopt;
  }
  const int64_t channels = images.sizes()[3];
  if (channels < 1 || channels > kMostChannels) return std::nullopt;
  const auto entries = entries_for(channels);
  if (!entries->results) return std::nullopt;
  Axes sizes = images.sizes();
  if (*result_channels_ == ChannelAxis::First) sizes = {sizes[0], sizes[3], sizes[1], sizes[2]};
  Array result(entries->results->dtype(), sizes);
  const auto run = [&]<size_t Size>() {
    look_up_images<Size>(images, *entries->results, *result_channels_, result.writable());
  };
  switch (size_of(result.dtype())) {
    case 1:
      run.operator()<1>();
      break;
    case 2:
      run.operator()<2>();
      break;
    case 4:
      run.operator()<4>();
      break;
    case 8:
      run.operator()<8>();
      break;
    default:
      return std::nullopt;
  }
  return result;
}

}  // namespace lamella::data
