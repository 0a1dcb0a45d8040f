import type { Tone } from './icon.tsx'
import './meter.css'

export interface MeterPart {
  readonly tone: Tone
  readonly count: number
  /** Hatched: no outcome yet. */
  readonly isOpen?: boolean
}

/** A bar of parts. The same numbers are written below it, so screen readers skip it. */
export const Meter = ({
  parts,
  total,
}: {
  readonly parts: readonly MeterPart[]
  readonly total: number
}) => (
  <div className="meter" aria-hidden="true">
    {parts
      .filter(({ count }) => count > 0)
      .map(({ tone, count, isOpen }) => (
        <i
          key={`${tone} ${isOpen}`}
          data-tone={tone}
          data-open={isOpen ? '' : undefined}
          style={{ width: `${(count / Math.max(total, 1)) * 100}%` }}
        />
      ))}
  </div>
)
