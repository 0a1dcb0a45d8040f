import { useNow } from '../clock.ts'
import { timeMode } from '../preferences.ts'
import { useStore } from '../store.ts'
import { fullTime, timeText } from '../words/times.ts'

/** A time as an age, in the local zone or in UTC, as the reader chose. The tooltip has all of them. */
export function Time({ at }: { readonly at: number }) {
  const now = useNow()
  const mode = useStore(timeMode)
  return (
    <time dateTime={new Date(at).toISOString()} title={fullTime(at)} className="nowrap">
      {timeText(at, now, mode)}
    </time>
  )
}
