import { useNow } from '../clock.ts'
import { timeMode } from '../preferences.ts'
import { useStore } from '../store.ts'
import { fullTime, timeText } from '../words/times.ts'

export interface TimeProps {
  readonly at: number
  /** Adds "ago" to an age, for a sentence. */
  readonly isAgo?: boolean
}

/** A time as an age, in the local zone or in UTC, as the reader chose. The tooltip has all of them. */
export function Time({ at, isAgo = false }: TimeProps) {
  const now = useNow()
  const mode = useStore(timeMode)
  return (
    <time dateTime={new Date(at).toISOString()} title={fullTime(at)} className="nowrap">
      {timeText(at, now, mode)}
      {isAgo && mode === 'relative' ? ' ago' : ''}
    </time>
  )
}
