import type { Entry } from './history.ts'
import { END_OF } from './message.ts'

/** Returns acknowledged messages that must finish without further action. */
export function endingIn(entries: readonly Entry[]): readonly string[] {
  const staying = new Set<string>()
  for (const entry of entries) {
    if (entry.what === 'attempted' && END_OF[entry.kind] === 'delay') staying.add(entry.id)
  }
  return entries.flatMap((entry) =>
    entry.what === 'acknowledged' && !staying.has(entry.id) ? [entry.id] : [],
  )
}
