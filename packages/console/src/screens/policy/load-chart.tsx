import { useLayoutEffect, useRef, useState } from 'react'
import { gridOf } from '../../components/bar-chart.tsx'
import { countText, highestOf, NBSP } from '../../words/numbers.ts'

export interface LoadLine {
  readonly name: 'own' | 'other'
  readonly title: string
  /** Calls in each second. */
  readonly load: readonly number[]
}

export interface LoadChartProps {
  readonly lines: readonly LoadLine[]
  readonly capacity: number
  readonly outageFromS: number
  readonly outageUntilS: number
  /** Seconds to show. */
  readonly seconds: number
}

const LEFT = 44
const TOP = 26
const HEIGHT = 280
const BASE = HEIGHT - 26

/** Calls per second of one or two policies, with the outage and the capacity of the dependency. */
export function LoadChart(props: LoadChartProps) {
  const { lines, capacity, outageFromS, outageUntilS, seconds } = props
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
  const shown = lines.map((line) => ({ ...line, load: line.load.slice(0, seconds) }))
  const grid = gridOf(
    highestOf(
      shown.map(({ load }) => highestOf(load)),
      capacity,
    ),
  )
  const top = grid.at(-1) ?? 1
  const x = (second: number) => LEFT + (second / seconds) * Math.max(width - LEFT, 1)
  const y = (calls: number) => BASE - (calls / top) * (BASE - TOP)
  const path = (load: readonly number[]) =>
    load.map((calls, at) => `${at === 0 ? 'M' : 'L'}${round(x(at))} ${round(y(calls))}`).join('')
  return (
    <figure className="load-chart" ref={frame}>
      <svg width={width} height={HEIGHT} aria-hidden="true">
        <rect
          className="load-chart-outage"
          x={x(outageFromS)}
          y={0}
          width={Math.max(x(outageUntilS) - x(outageFromS), 1)}
          height={BASE}
        />
        <text x={x((outageFromS + outageUntilS) / 2)} y={14} textAnchor="middle">
          outage
        </text>
        {[0, ...grid].map((line) => (
          <g key={line}>
            <path className="load-chart-grid" d={`M${LEFT} ${y(line)}H${width}`} />
            <text x={LEFT - 8} y={y(line) + 4} textAnchor="end">
              {countText(line)}
            </text>
          </g>
        ))}
        {shown.toReversed().map(({ name, load }) => (
          <g key={name} data-line={name}>
            <path
              className="load-chart-area"
              d={`${path(load)}L${round(x(Math.max(load.length - 1, 0)))} ${BASE}L${LEFT} ${BASE}Z`}
            />
            <path className="load-chart-line" d={path(load)} />
          </g>
        ))}
        <path className="load-chart-capacity" d={`M${LEFT} ${y(capacity)}H${width}`} />
        {[0, outageFromS, outageUntilS, seconds].map((second, at) => (
          <text
            key={at}
            x={x(second)}
            y={HEIGHT - 8}
            textAnchor={at === 0 ? 'start' : at === 3 ? 'end' : 'middle'}
          >
            {second === 0 ? '0' : `${countText(second)}${NBSP}s`}
          </text>
        ))}
      </svg>
    </figure>
  )
}

const round = (value: number) => Math.round(value * 10) / 10

/** 30 rows: enough for the shape of the load, and few enough to read. */
const ROWS_MAX = 30

/** The same numbers as a table, one row for some seconds with the highest load in them. */
export function LoadTable({ lines, seconds }: Pick<LoadChartProps, 'lines' | 'seconds'>) {
  const step = Math.max(1, Math.ceil(seconds / ROWS_MAX))
  const starts = Array.from({ length: Math.ceil(seconds / step) }, (_, at) => at * step)
  return (
    <table className="table">
      <caption className="visually-hidden">Highest calls per second</caption>
      <thead>
        <tr>
          <th scope="col">From second</th>
          {lines.map(({ name, title }) => (
            <th key={name} scope="col" className="num">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {starts.map((start) => (
          <tr key={start}>
            <th scope="row">{countText(start)}</th>
            {lines.map(({ name, load }) => (
              <td key={name} className="num">
                {start >= load.length ? '–' : countText(highestOf(load.slice(start, start + step)))}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
