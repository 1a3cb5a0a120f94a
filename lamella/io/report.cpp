// The page around the charts.
#include "lamella/io/report.h"

#include <fmt/format.h>

#include "lamella/base/system/files.h"
#include "lamella/io/chart.h"
#include "lamella/io/report_style.h"

namespace lamella::io {

std::string render_report(const Report& report) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>{0}</title><style>{1}</style></head>\n<body><main>\n<header><h1>{0}</h1>",
      escape_html(report.title), kReportStyle);
  if (!report.summary.empty()) page += fmt::format("<p>{}</p>", escape_html(report.summary));
  page += "</header>\n";
  if (!report.highlights.empty()) {
    page += "<dl class=\"highlights\">";
    for (const Fact& fact : report.highlights) {
      page += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escape_html(fact.name),
                          escape_html(fact.value));
    }
    page += "</dl>\n";
  }
  if (!report.charts.empty()) {
    page += "<section class=\"charts\">\n";
    for (const Chart& chart : report.charts) page += render_chart(chart) + "\n";
    page += "</section>\n";
  }
  if (!report.facts.empty()) {
    page += "<section class=\"facts\"><h2>About this run</h2><dl>";
    for (const Fact& fact : report.facts) {
      page +=
          fmt::format("<dt>{}</dt><dd>{}</dd>", escape_html(fact.name), escape_html(fact.value));
    }
    page += "</dl></section>\n";
  }
  return page + "<footer>Written by Lamella</footer>\n</main></body></html>\n";
}

void write_report(const std::string& path, const Report& report) {
  const std::string page = render_report(report);
  atomic_write_file(path, [&](FileWriter& file) { file.write(page); });
}

}  // namespace lamella::io
