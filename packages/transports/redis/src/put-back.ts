import type { DrainedDeadLetter } from '@redrive/runtime'
import { type Field, producersFields } from './delivery.ts'

/** Returns what a dead letter needs to be put back: the fields of Redrive. */
export function putBackEnvelopeOf(
  headers: Readonly<Record<string, Field>>,
): Readonly<Record<string, string>> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('redrive-'))
  return { deadLetterFields: JSON.stringify(own) }
}

/** Returns the fields of the dead letter as they were in its stream. */
export function putBackOf({ delivery, envelope }: DrainedDeadLetter): readonly Field[] {
  const own = JSON.parse(envelope['deadLetterFields'] ?? '[]') as readonly [string, string][]
  return [...producersFields(delivery), ...own.flat()]
}
