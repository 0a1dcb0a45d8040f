/** Draws a dashboard with the places, units and states of its JSON. It shows the data, not the style of Grafana. */
export interface Drawn {
  readonly type: 'timeseries' | 'stat' | 'row'
  readonly title: string
  readonly gridPos: {
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
  }
  readonly fieldConfig?: FieldConfig | undefined
  readonly lines: readonly {
    readonly name: string
    readonly points: readonly (readonly [atMs: number, value: number])[]
  }[]
}

interface FieldConfig {
  readonly defaults: {
    readonly unit: string
    readonly max?: number
    readonly mappings?: readonly {
      readonly options: Readonly<Record<string, { readonly text: string }>>
    }[]
  }
}

interface Span {
  readonly fromMs: number
  readonly toMs: number
}

const WIDTH = 1_320
const COLUMN = WIDTH / 24
const ROW = 27
const TOP = 44
const COLORS = [
  '#3871dc',
  '#e0752d',
  '#2f9e5b',
  '#a352cc',
  '#d44a3a',
  '#1f9fb5',
  '#b38a00',
  '#6b7280',
]
/** Lines in one legend; more do not fit. */
const LEGEND = 6

export function drawing(title: string, panels: readonly Drawn[], span: Span): string {
  const height = TOP + ROW * Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) + 10
  const body = panels.map((panel) => drawnPanel(panel, span)).join('')
  return `<style>body{margin:0}</style><svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="11">
<rect width="${WIDTH}" height="${height}" fill="#f4f5f7"/><text x="12" y="28" font-size="18">${escaped(title)}</text>${body}</svg>`
}

function drawnPanel(panel: Drawn, span: Span): string {
  const { x, y, w, h } = panel.gridPos
  const [left, top, width, height] = [
    x * COLUMN + 4,
    TOP + y * ROW + 3,
    w * COLUMN - 8,
    h * ROW - 6,
  ]
  const content = { row: rowTitle, stat: number, timeseries: chart }[panel.type](panel, {
    width,
    height,
    span,
  })
  const box = `<rect width="${width}" height="${height}" rx="3" fill="#fff" stroke="#dcdfe4"/><text x="8" y="16" font-weight="bold">${escaped(panel.title)}</text>`
  return `<g transform="translate(${left},${top})">${panel.type === 'row' ? '' : box}${content}</g>`
}

interface Place {
  readonly width: number
  readonly height: number
  readonly span: Span
}

const rowTitle = ({ title }: Drawn) =>
  `<text x="6" y="15" font-size="13" font-weight="bold" fill="#555">${escaped(title)}</text>`

function number(panel: Drawn, { width, height }: Place): string {
  const value = panel.lines[0]?.points.at(-1)?.[1]
  const text = value === undefined ? 'no data' : labelOf(panel, value)
  return `<text x="${width / 2}" y="${height - 30}" font-size="30" text-anchor="middle">${text}</text>`
}

function chart(panel: Drawn, { width, height, span }: Place): string {
  const [left, right, top, bottom] = [62, width - 10, 28, height - 36]
  const values = panel.lines.flatMap(({ points }) => points.map(([, value]) => value))
  const highest = panel.fieldConfig?.defaults.max ?? (Math.max(0, ...values) || 1)
  const steps = panel.fieldConfig?.defaults.max ?? 4
  const xOf = (atMs: number) =>
    left + ((atMs - span.fromMs) / (span.toMs - span.fromMs)) * (right - left)
  const yOf = (value: number) => bottom - (Math.min(value, highest) / highest) * (bottom - top)
  const grid = Array.from({ length: steps + 1 }, (_, step) => {
    const value = (highest * step) / steps
    return `<path d="M${left} ${yOf(value)}H${right}" stroke="#e8eaee"/><text x="${left - 5}" y="${yOf(value) + 4}" text-anchor="end" fill="#666">${labelOf(panel, value)}</text>`
  })
  const lines = panel.lines.map(({ points }, at) => {
    const path = points.map(
      ([atMs, value], index) =>
        `${index === 0 ? 'M' : 'L'}${xOf(atMs).toFixed(1)} ${yOf(value).toFixed(1)}`,
    )
    return `<path d="${path.join('')}" fill="none" stroke="${COLORS[at % COLORS.length]}" stroke-width="1.6"/>`
  })
  const empty =
    values.length === 0
      ? `<text x="${width / 2}" y="${height / 2}" text-anchor="middle" fill="#888">no data</text>`
      : ''
  return `${grid.join('')}${lines.join('')}${empty}${legend(panel, height - 12)}`
}

function legend({ lines }: Drawn, y: number): string {
  let x = 10
  return lines
    .slice(0, LEGEND)
    .map(({ name }, at) => {
      const text = `<path d="M${x} ${y - 4}h10" stroke="${COLORS[at % COLORS.length]}" stroke-width="3"/><text x="${x + 14}" y="${y}" font-size="10">${escaped(name)}</text>`
      x += 26 + name.length * 5.6
      return text
    })
    .join('')
}

function labelOf({ fieldConfig }: Drawn, value: number): string {
  const { unit = 'short', mappings = [] } = fieldConfig?.defaults ?? {}
  const state = mappings[0]?.options[String(value)]?.text
  if (state !== undefined) return state
  const short = (one: number) => String(Number(one.toPrecision(3)))
  if (unit === 's') return value < 1 ? `${short(value * 1_000)} ms` : `${short(value)} s`
  if (unit === 'percentunit') return `${short(value * 100)} %`
  if (unit === 'bytes') return `${Math.round(value / 1_048_576)} MiB`
  return unit === 'cps' ? `${short(value)}/s` : short(value)
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
