// A series as an SVG image with logarithmic axes: measurements, the fitted curve and the bound.
import { mediansOf } from './fit.ts'
import { nameOf } from './subject.ts'
import type { Result } from './result.ts'
import { digits } from './text.ts'

const WIDTH = 640
const HEIGHT = 420
const LEFT = 70
const RIGHT = 40
const TOP = 50
const BOTTOM = 50
/** Points of the fitted curve, enough to look smooth. */
const STEPS = 40

interface Axes {
  readonly left: number
  readonly right: number
  readonly bottom: number
  readonly top: number
}

export function plot({ series, sized, fit, exponent, verdict }: Result): string {
  const { subject, unit, bound } = series
  const points = mediansOf(sized)
  const costs = sized.flatMap((one) => one.costs)
  const axes: Axes = {
    left: Math.log10(Math.min(...points.map(({ x }) => x))),
    right: Math.log10(Math.max(...points.map(({ x }) => x))),
    bottom: Math.floor(Math.log10(Math.min(...costs))),
    top: Math.ceil(Math.log10(Math.max(...costs)) + 0.01),
  }
  const title = `${nameOf(series)}: exponent ${exponent.median.toFixed(2)}, bound ${bound}, ${verdict.kind}`
  const dots = sized.flatMap(({ size, costs: some }) =>
    some.map((cost) => circle(axes, size, cost, 2, '#9bb')),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(WIDTH / 2, 24, escaped(title), 'middle'),
    text(WIDTH / 2, HEIGHT - 12, escaped(subject.of), 'middle'),
    text(8, TOP - 14, escaped(unit), 'start'),
    text(WIDTH - RIGHT, TOP - 10, 'line: fit, dashed: bound', 'end'),
    ...lines(axes),
    ...points.map(({ x }) => text(across(axes, x), HEIGHT - BOTTOM + 18, digits(x), 'middle')),
    ...dots,
    ...points.map(({ x, y }) => circle(axes, x, y, 4, '#067')),
    curve(axes, fitted(points, fit.constant, fit.exponent), '#067', ''),
    curve(axes, fitted(points, fit.constant, bound), '#c40', '6 4'),
    '</svg>',
    '',
  ].join('\n')
}

/** Returns the curve through the largest size with this exponent behind the constant part. */
function fitted(
  points: ReturnType<typeof mediansOf>,
  constant: number,
  exponent: number,
): (size: number) => number {
  const last = points.at(-1) ?? { x: 1, y: 1 }
  const part = Math.max(0, last.y - constant)
  return (size) => constant + part * (size / last.x) ** exponent
}

const across = ({ left, right }: Axes, size: number) =>
  LEFT + ((Math.log10(size) - left) / (right - left)) * (WIDTH - LEFT - RIGHT)

const up = ({ bottom, top }: Axes, cost: number) =>
  HEIGHT - BOTTOM - ((Math.log10(cost) - bottom) / (top - bottom)) * (HEIGHT - TOP - BOTTOM)

function lines(axes: Axes): readonly string[] {
  const decades = Array.from({ length: axes.top - axes.bottom + 1 }, (_, at) => axes.bottom + at)
  return decades.flatMap((decade) => {
    const y = up(axes, 10 ** decade).toFixed(1)
    return [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}" stroke="#ddd"/>`,
      text(LEFT - 8, Number(y) + 4, digits(10 ** decade), 'end'),
    ]
  })
}

function curve(axes: Axes, costOf: (size: number) => number, colour: string, dash: string): string {
  const sizes = Array.from(
    { length: STEPS + 1 },
    (_, step) => 10 ** (axes.left + ((axes.right - axes.left) * step) / STEPS),
  )
  const drawn = sizes
    .map((size) => ({ size, cost: costOf(size) }))
    .filter(({ cost }) => cost >= 10 ** axes.bottom)
    .map(({ size, cost }) => `${across(axes, size).toFixed(1)},${up(axes, cost).toFixed(1)}`)
  return `<polyline points="${drawn.join(' ')}" fill="none" stroke="${colour}" stroke-dasharray="${dash}"/>`
}

const circle = (axes: Axes, size: number, cost: number, radius: number, colour: string) =>
  `<circle cx="${across(axes, size).toFixed(1)}" cy="${up(axes, cost).toFixed(1)}" r="${radius}" fill="${colour}"/>`

const text = (x: number, y: number, content: string, anchor: 'start' | 'middle' | 'end') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${content}</text>`

const escaped = (content: string) =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
