import type { FailureClassName } from './failure-class.tsx'
import './sparkline.css'

export interface SparklineProps {
  readonly values: readonly number[]
  readonly name: FailureClassName
  readonly width?: number
  readonly height?: number
}

/**
 * A small area chart with its own scale. The numbers that matter are written next to it, so it is hidden from screen
 * readers.
 */
export function Sparkline({ values, name, width = 236, height = 40 }: SparklineProps) {
  const most = Math.max(...values, 1)
  const x = (at: number) => ((at / Math.max(values.length - 1, 1)) * width).toFixed(1)
  const y = (value: number) => (height - 1 - (value / most) * (height - 3)).toFixed(1)
  const line = values.map((value, at) => `${at === 0 ? 'M' : 'L'}${x(at)} ${y(value)}`).join('')
  return (
    <svg
      className="sparkline"
      data-class={name}
      viewBox={`0 0 ${width} ${height}`}
      style={{ height }}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path className="sparkline-base" d={`M0 ${height - 0.5}H${width}`} />
      {values.length === 0 ? null : (
        <>
          <path className="sparkline-area" d={`${line}L${width} ${height}L0 ${height}Z`} />
          <path className="sparkline-line" d={line} />
        </>
      )}
    </svg>
  )
}
