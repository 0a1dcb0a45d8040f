import type { CheckHit, CheckResult } from '../finding.ts'
import type { NatsFacts, StreamFacts } from './facts.ts'
import { deadLetterStream, type NatsSource, retryStream } from './names.ts'

/** The purpose of a stream. */
export type Role = 'source' | 'retry' | 'deadLetters'

export interface StreamWithRole {
  readonly stream: StreamFacts
  readonly role: Role
  /** The stream of the producers; undefined when it is missing. */
  readonly source: StreamFacts | undefined
}

export const neededStreams = (source: NatsSource): readonly string[] => [
  source.stream,
  retryStream(source),
  deadLetterStream(source),
]

const ROLES: readonly Role[] = ['source', 'retry', 'deadLetters']

/** Returns the streams of the sources with their role. A stream may have several consumers. */
export function placedIn({ streams = [], sources }: NatsFacts): readonly StreamWithRole[] {
  const placed = sources.flatMap((of) => {
    const found = neededStreams(of).map((wanted) => streams.find(({ name }) => name === wanted))
    return found.flatMap((stream, at) => {
      const role = ROLES[at]
      return stream === undefined || role === undefined ? [] : [{ stream, role, source: found[0] }]
    })
  })
  return [...new Map(placed.map((one) => [one.stream.name, one])).values()]
}

/** Returns a function that runs `check` on each stream with one of these roles and collects the hits. */
export function onStreams(
  roles: readonly Role[],
  check: (placed: StreamWithRole) => CheckResult,
): (facts: NatsFacts) => readonly CheckHit[] {
  return (facts) =>
    placedIn(facts)
      .filter(({ role }) => roles.includes(role))
      .flatMap((placed) => hitOf(placed.stream.name, check(placed)))
}

const hitOf = (subject: string, found: CheckResult): readonly CheckHit[] => {
  if (found === undefined) return []
  return [typeof found === 'string' ? { subject, found } : { subject, ...found }]
}

/** Returns the limits on the number and size of messages, such as `max_msgs=1000`. */
export const sizeLimitsOf = (stream: StreamFacts): readonly string[] =>
  [
    ['max_msgs', stream.maxMessages],
    ['max_msgs_per_subject', stream.maxMessagesPerSubject],
    ['max_bytes', stream.maxBytes],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
