// Names of file formats that Lamella does not read, so that an error can say what a file is.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace lamella::io {

// What the content looks like, such as "a NumPy archive or PyTorch checkpoint (zip)"; empty if it
// is of no format known here.
std::string_view foreign_format(std::span<const std::byte> content);

// Whether the content begins as a checkpoint that MindSpore writes with format='ckpt'.
bool is_mindspore_checkpoint(std::span<const std::byte> content);

}  // namespace lamella::io
