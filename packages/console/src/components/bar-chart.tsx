import { useLayoutEffect, useRef, useState } from 'react'
import { countText } from '../words/numbers.ts'
import type { FailureClassName } from './failure-class.tsx'
import './bar-chart.css'

export interface Bar {
  /** Start of the minute or hour, epoch ms. */
  readonly at: number
  readonly count: number
}

export interface BarChartProps {
  readonly label: string
  readonly bars: readonly Bar[]
  readonly name: FailureClassName
  readonly timeOf: (at: number) => string
  /** At most two, such as the first and the last failure. */
  readonly marks?: readonly { readonly at: number; readonly text: string }[]
  readonly height?: number
}

const LEFT = 48
const BOTTOM = 20
const TOP = 22
/** 90 px for the text of one tick. */
const TICK_WIDTH = 90

/** Bars over time, drawn at the width of the page so that text is never scaled. A table has the same numbers. */
export function BarChart(props: BarChartProps) {
  const { label, bars, name, timeOf, marks = [], height = 152 } = props
  const [frame, width] = useWidth()
  const [pointed, setPointed] = useState<number>()
  const area = Math.max(width - LEFT, 1)
  const base = height - BOTTOM
  const step = area / Math.max(bars.length, 1)
  const lines = gridOf(Math.max(...bars.map(({ count }) => count), 0))
  const top = lines.at(-1) ?? 1
  const y = (count: number) => base - (count / top) * (base - TOP)
  const xOf = (at: number) => {
    const first = bars[0]?.at ?? 0
    const span = (bars[1]?.at ?? first + 1) - first
    return LEFT + ((at - first) / span) * step
  }
  const shown = pointed === undefined ? undefined : bars[pointed]
  return (
    <figure className="bar-chart" ref={frame}>
      <svg
        data-class={name}
        width={width}
        height={height}
        aria-hidden="true"
        onPointerMove={({ nativeEvent: { offsetX } }) => {
          const at = Math.floor((offsetX - LEFT) / step)
          setPointed(at >= 0 && at < bars.length ? at : undefined)
        }}
        onPointerLeave={() => setPointed(undefined)}
      >
        {[0, ...lines].map((line) => (
          <g key={line}>
            <path className="bar-chart-grid" d={`M${LEFT} ${y(line)}H${width}`} />
            {line === 0 ? null : (
              <text x={LEFT - 8} y={y(line) + 4} textAnchor="end">
                {countText(line)}
              </text>
            )}
          </g>
        ))}
        {bars.map(({ at, count }, index) =>
          count === 0 ? null : (
            <rect
              key={at}
              x={LEFT + index * step + (step > 3 ? 0.5 : 0)}
              y={y(count)}
              width={Math.max(step - (step > 3 ? 1 : 0), 1)}
              height={Math.max(base - y(count), 1)}
              rx={step > 4 ? 1 : 0}
              data-pointed={index === pointed ? '' : undefined}
            />
          ),
        )}
        {apart(marks, xOf).map(({ at, text }) => (
          <ChartMark key={text} x={xOf(at)} width={width} base={base} text={text} />
        ))}
        {ticksOf(bars.length, area).map((index) => (
          <text
            key={index}
            x={LEFT + index * step}
            y={height - 4}
            textAnchor={index === 0 ? 'start' : index > bars.length - 2 ? 'end' : 'middle'}
          >
            {timeOf(bars[Math.min(index, bars.length - 1)]?.at ?? 0)}
          </text>
        ))}
      </svg>
      <span className="bar-chart-readout" aria-hidden="true" data-shown={shown && ''}>
        {shown === undefined ? '' : `${timeOf(shown.at)}: ${countText(shown.count)}`}
      </span>
      <table className="visually-hidden">
        <caption>{label}</caption>
        <tbody>
          {bars
            .filter(({ count }) => count > 0)
            .map(({ at, count }) => (
              <tr key={at}>
                <th scope="row">{timeOf(at)}</th>
                <td>{countText(count)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  )
}

/** 90 px for the text of a mark. A second mark that is nearer is left out. */
const MARK_WIDTH = 90

const apart = (marks: NonNullable<BarChartProps['marks']>, xOf: (at: number) => number) =>
  marks.filter(({ at }, index) => index === 0 || xOf(at) - xOf(marks[0]?.at ?? at) > MARK_WIDTH)

interface ChartMarkProps {
  readonly x: number
  readonly width: number
  readonly base: number
  readonly text: string
}

/** A dashed line with a text on the side that has room. */
const ChartMark = ({ x, width, base, text }: ChartMarkProps) => (
  <g>
    <path className="bar-chart-mark" d={`M${x} 4V${base}`} />
    <text x={x > width / 2 ? x - 6 : x + 6} y={13} textAnchor={x > width / 2 ? 'end' : 'start'}>
      {text}
    </text>
  </g>
)

/** Returns at most three round values up to one that is not below the largest. */
export function gridOf(most: number): readonly number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)))
  const step = [0.5, 1, 2, 5].map((one) => one * power).find((one) => one * 3 >= most) ?? power
  const whole = Math.max(1, step)
  return Array.from({ length: Math.max(1, Math.ceil(most / whole)) }, (_, at) => whole * (at + 1))
}

/** Returns the bars with a time below them: the first, the last and as many between as have room. */
function ticksOf(bars: number, area: number): readonly number[] {
  const count = Math.max(1, Math.min(4, Math.floor(area / TICK_WIDTH) - 1))
  const all = Array.from({ length: count + 1 }, (_, at) => Math.round((at / count) * bars))
  return [...new Set(bars < count ? [0] : all)]
}

/** Returns the width of an element, which changes with the window. */
function useWidth() {
  const frame = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0))
    setWidth(element.clientWidth)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [frame, width] as const
}
