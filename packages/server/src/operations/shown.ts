import type { Output } from '@redrive/api'
import type {
  DeadLetterSummary,
  EarlierCycle,
  FailureGroup,
  GroupExplanation,
  ReplayItem,
  SetAsideMessage,
} from '@redrive/catalog'
import type { FailureRecord } from '@redrive/core'
import type { Reading } from '../reading/reading.ts'

/** Records of the catalog as people may see them: every text of a message goes through `Reading`. */

export const shownDeadLetter = (
  reading: Reading,
  one: DeadLetterSummary,
): Output<'listDeadLetters'>['deadLetters'][number] => ({
  ...one,
  ...shownOptional(reading, { lane: one.lane }),
  message: reading.text(one.message),
  reason: reading.text(one.reason),
  key: reading.text(one.key),
  headers: { ...reading.headers(one.source, one.headers) },
  history: shownHistory(reading, one.history),
})

const shownHistory = (reading: Reading, history: readonly FailureRecord[]) =>
  history.map((one) => ({ ...one, message: reading.text(one.message) }))

export function shownCycle(
  reading: Reading,
  source: string,
  { preview, hiddenBy, history, ...one }: EarlierCycle,
  isHidden: boolean,
): Output<'listCycles'>['cycles'][number] {
  const body = {
    isHidden,
    ...(isHidden ? {} : reading.body(source, { preview, hiddenBy })),
  }
  return {
    ...one,
    reason: reading.text(one.reason),
    history: shownHistory(reading, history),
    ...(one.isEdited ? { body } : {}),
  }
}

export const shownGroup = (reading: Reading, group: FailureGroup): Output<'getGroup'> => ({
  ...group,
  title: reading.text(group.title),
  sample: reading.text(group.sample),
})

export const shownExplanation = (
  reading: Reading,
  { shared, sample, unknown, ...rest }: GroupExplanation,
): Output<'explainGroup'> => ({
  ...rest,
  unknown: [...unknown],
  shared: { ...shared, message: reading.text(shared.message) },
  sample: reading.text(sample),
})

export const shownItem = (
  reading: Reading,
  one: ReplayItem,
): Output<'listReplayItems'>['items'][number] => ({
  ...one,
  ...shownOptional(reading, { key: one.key, message: one.message, reason: one.reason }),
})

export const shownSetAside = (reading: Reading, one: SetAsideMessage): Output<'getSetAside'> => ({
  ...one,
  ...shownOptional(reading, { replayError: one.replayError }),
  explanation: reading.text(one.explanation),
  key: reading.text(one.key),
  withoutHeaders: [...one.withoutHeaders],
})

/** Returns the texts that are set. */
const shownOptional = <K extends string>(
  reading: Reading,
  texts: Readonly<Record<K, string | undefined>>,
): { [Key in K]?: string } => {
  const set = Object.entries<string | undefined>(texts).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, reading.text(text)]],
  )
  return Object.fromEntries(set) as { [Key in K]?: string }
}
