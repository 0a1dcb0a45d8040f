import { highestOf } from './highest.ts'

/** One policy's load over time. */
export interface Panel {
  readonly title: string
  readonly verdict: string
  readonly isGood: boolean
  /** Calls per second, one value per second. */
  readonly load: readonly number[]
}

export interface PlotOptions {
  readonly title: string
  readonly panels: readonly Panel[]
  readonly arrivalsPerSecond: number
  readonly capacityPerSecond: number
  readonly outageFromS: number
  readonly outageUntilS: number
  readonly seconds: number
}

const WIDTH = 900
const PANEL_HEIGHT = 96
const LEFT = 60
const RIGHT = 20
const TOP = 56
const PLOT_HEIGHT = 58
const INK = '#1f2933'
const FAINT = '#7b8794'

/** Draws all policies on one scale. An overloaded policy leaves the band. */
export function plot(options: PlotOptions): string {
  const { title, panels, arrivalsPerSecond, capacityPerSecond } = options
  const highest = highestOf(
    panels.map(({ load }) => highestOf(load.slice(0, options.seconds))),
    capacityPerSecond * 1.2,
  )
  const height = TOP + panels.length * PANEL_HEIGHT + 36
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="${LEFT}" y="22" font-size="15" font-weight="600" fill="${INK}">${escaped(title)}</text>
<text x="${LEFT}" y="40" fill="${FAINT}">calls per second on the dependency · grey band: outage · dashed: its capacity (${capacityPerSecond}/s) · dotted: arrivals (${arrivalsPerSecond}/s)</text>
${panels.map((panel, index) => drawPanel(panel, index, highest, options)).join('\n')}
${drawAxis(options, TOP + panels.length * PANEL_HEIGHT)}
</svg>
`
}

function drawPanel(panel: Panel, index: number, highest: number, options: PlotOptions): string {
  const top = TOP + index * PANEL_HEIGHT + 22
  const x = (second: number) => LEFT + (second / options.seconds) * (WIDTH - LEFT - RIGHT)
  const y = (calls: number) => top + PLOT_HEIGHT - (calls / highest) * PLOT_HEIGHT
  const colour = panel.isGood ? '#0b7a5c' : '#c0392b'
  const line = (calls: number, dash: string) =>
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(calls).toFixed(1)}" y2="${y(calls).toFixed(1)}" stroke="${FAINT}" stroke-dasharray="${dash}" stroke-width="1"/>`
  // Ends where the run ended: a line at zero would look like normal operation.
  const points = panel.load
    .slice(0, options.seconds)
    .map((calls, second) => [second, calls] as const)
  const path = points
    .map(([second, calls]) => `${x(second).toFixed(1)},${y(calls).toFixed(1)}`)
    .join(' ')
  return `<rect x="${x(options.outageFromS).toFixed(1)}" y="${top}" width="${(x(options.outageUntilS) - x(options.outageFromS)).toFixed(1)}" height="${PLOT_HEIGHT}" fill="#eceff1"/>
<text x="${LEFT}" y="${top - 6}" font-weight="600" fill="${INK}">${escaped(panel.title)}</text>
<text x="${WIDTH - RIGHT}" y="${top - 6}" text-anchor="end" fill="${colour}">${escaped(panel.verdict)}</text>
<polygon points="${LEFT},${y(0)} ${path} ${x(points.length - 1).toFixed(1)},${y(0)}" fill="${colour}" fill-opacity="0.25"/>
<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="1.2"/>
${line(options.capacityPerSecond, '5 3')}${line(options.arrivalsPerSecond, '1 3')}
<text x="${LEFT - 6}" y="${top + 9}" text-anchor="end" fill="${FAINT}">${Math.round(highest)}</text>
<text x="${LEFT - 6}" y="${top + PLOT_HEIGHT}" text-anchor="end" fill="${FAINT}">0</text>`
}

function drawAxis({ seconds }: PlotOptions, top: number): string {
  const step = seconds > 1_200 ? 600 : seconds > 300 ? 60 : 30
  const marks = Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => index * step)
  return marks
    .map((second) => {
      const x = LEFT + (second / seconds) * (WIDTH - LEFT - RIGHT)
      const label = seconds > 300 ? `${second / 60} min` : `${second} s`
      return `<text x="${x.toFixed(1)}" y="${top + 20}" text-anchor="middle" fill="${FAINT}">${label}</text>`
    })
    .join('')
}

const escaped = (text: string) => text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`)
