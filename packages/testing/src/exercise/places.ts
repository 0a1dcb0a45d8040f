import { describeError } from './describe-error.ts'

/** Where messages are: in the source, or among the dead letters. */
export interface Places {
  readonly backlog: number
  readonly deadLetters: number
}

/** Returns what is wrong with the places: whether messages are missing, too many, or in the wrong place. */
export function misplaced(seen: unknown, expected: Places): string {
  if (seen instanceof Error) return `the places of messages can be read: ${describeError(seen)}`
  const found = seen as Places
  const surplus = found.backlog + found.deadLetters - expected.backlog - expected.deadLetters
  const verdict =
    surplus === 0
      ? 'in the wrong place'
      : `${Math.abs(surplus)} ${surplus < 0 ? 'missing' : 'too many'}`
  return `messages: ${verdict} (expected ${placesText(expected)}, found ${placesText(found)})`
}

const placesText = ({ backlog, deadLetters }: Places) =>
  `${backlog} in the source and ${deadLetters} dead`
