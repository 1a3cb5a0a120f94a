// Charts as HTML with inline SVG.
#pragma once

#include <string>
#include <string_view>

#include "lamella/io/report.h"

namespace lamella::io {

// Text with the characters that mean something to HTML replaced.
std::string escape_html(std::string_view text);

// The chart as a <figure>. Lines are SVG that stretches with the page; labels are text of the page,
// so they keep their size on every width.
std::string render_chart(const Chart& chart);

}  // namespace lamella::io
