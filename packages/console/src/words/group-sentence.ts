import type { Group } from '@redrive/api'
import { countOf, countText, NBSP } from './numbers.ts'
import { isGrowing } from './suggestion.ts'
import { clockText, durationText, type TimeMode } from './times.ts'

/** Returns a group as a sentence: how many messages, since when, whether it continues, and what is open. */
export function groupSentence(group: Group, now: number, mode: TimeMode): string {
  const { count, openCount, replayingCount, firstSeenAt, lastSeenAt } = group
  const since = clockText(firstSeenAt, now, mode === 'utc' ? 'utc' : 'local')
  const messages = count === 1 ? 'message' : 'messages'
  const last = isGrowing(group, now)
    ? `the last one ${durationText(now - lastSeenAt)} ago`
    : `none for the last ${durationText(now - lastSeenAt)}`
  return `${countText(count)} ${messages} since ${since}, ${last}. ${openText(count, openCount)}${
    replayingCount > 0 ? ` ${countText(replayingCount)} are in a run.` : ''
  }`
}

function openText(count: number, open: number): string {
  if (open === 0) return 'None is open.'
  if (open === count) return count === 1 ? 'It is open.' : 'All are open.'
  return `${countText(open)} ${open === 1 ? 'is' : 'are'} open.`
}

/** Returns the comment of a discard. It has plain spaces, because it is stored and searched. */
export const discardText = (count: number, reason: string): string =>
  `Discarded ${countOf(count, 'message').replaceAll(NBSP, ' ')}: ${reason}`
