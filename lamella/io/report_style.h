// The style of reports: readable in light and dark, from 320 pixels on.
#pragma once

namespace lamella::io {

// Colours of curves: the palette of Okabe and Ito, which people with colour-blindness can tell
// apart, darkened for a light page and lightened for a dark one.
inline constexpr const char* kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --muted: #5d6672; --rule: #dfe3e8;
  --grid: #e9ecf0;
  --curve-0: #0072b2; --curve-1: #d55e00; --curve-2: #00865f; --curve-3: #b6568f;
  --curve-4: #b07d00; --curve-5: #2f93c8; --curve-6: #7a5cc0; --curve-7: #5d6672;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2126; --text: #e6e9ed; --muted: #9aa4b0; --rule: #333a42;
    --grid: #2a3037;
    --curve-0: #5fb4e8; --curve-1: #f08a4b; --curve-2: #3cc79b; --curve-3: #dd8fbb;
    --curve-4: #e3b341; --curve-5: #9fd3f5; --curve-6: #b39df0; --curve-7: #9aa4b0;
  }
}
* { box-sizing: border-box; margin: 0; }
body {
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  color: var(--text); background: var(--page); overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1240px; margin: 0 auto; padding: clamp(16px, 4vw, 40px); }
h1 { font-size: clamp(22px, 4vw, 30px); line-height: 1.2; letter-spacing: -0.01em; }
h2 { font-size: 16px; margin: 0 0 12px; }
header p { color: var(--muted); margin-top: 6px; max-width: 90ch; text-wrap: pretty; }
.highlights { display: flex; flex-wrap: wrap; gap: 16px; margin: 24px 0 16px; }
.highlights div { flex: 1 1 150px; }
.charts { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); }
.highlights div, figure, .facts {
  background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 16px 18px;
}
.highlights dt { color: var(--muted); font-size: 13px; }
.highlights dd { font-size: 24px; font-weight: 650; line-height: 1.25; letter-spacing: -0.01em; }
figure { min-width: 0; }
figcaption { font-weight: 650; font-size: 16px; }
.legend {
  display: flex; flex-wrap: wrap; gap: 2px 18px; list-style: none; padding: 0; margin: 6px 0 14px;
  font-size: 13.5px;
}
.legend i {
  display: inline-block; width: 18px; height: 3px; border-radius: 2px; margin-right: 7px;
  vertical-align: middle; background: var(--curve);
}
.legend small { color: var(--muted); font-size: 12px; }
.plot {
  display: grid; grid-template: auto clamp(200px, 30vw, 300px) 22px auto / auto minmax(0, 1fr);
  font-size: 12.5px; color: var(--muted); column-gap: 8px;
}
.y-name { grid-area: 1 / 1 / 2 / 3; margin-bottom: 8px; }
.y-ticks { grid-area: 2 / 1; position: relative; text-align: right; }
.y-ticks i { visibility: hidden; }
.y-ticks span { position: absolute; right: 0; transform: translateY(50%); line-height: 1; white-space: nowrap; }
svg { grid-area: 2 / 2; width: 100%; height: 100%; display: block; overflow: visible; }
.x-ticks { grid-area: 3 / 2; position: relative; }
.x-ticks span { position: absolute; top: 5px; transform: translateX(-50%); line-height: 1; white-space: nowrap; }
.x-name { grid-area: 4 / 2; text-align: right; }
path { fill: none; vector-effect: non-scaling-stroke; stroke-linejoin: round; stroke-linecap: round; }
.grid { stroke: var(--grid); stroke-width: 1; }
.line { stroke: var(--curve); stroke-width: 2; }
.faint { opacity: 0.28; }
.faint path { stroke-width: 1; }
.dot { stroke: var(--curve); stroke-width: 7; }
.dot:hover { stroke-width: 12; }
.note { color: var(--muted); font-size: 13px; margin-top: 10px; }
.facts { margin-top: 16px; }
.facts dl { display: grid; grid-template-columns: minmax(90px, max-content) minmax(0, 1fr); }
.facts dt, .facts dd { padding: 6px 0; border-top: 1px solid var(--rule); }
.facts dt { color: var(--muted); padding-right: 24px; }
.facts dl > :nth-child(-n+2) { border-top: 0; }
footer { color: var(--muted); font-size: 13px; margin-top: 24px; }
)css";

}  // namespace lamella::io
