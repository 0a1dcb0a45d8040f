import type { DrainedQueue } from '@redrive/runtime'
import { countDeadLetters, type DeadLetterPlace } from '../composition/rabbitmq.ts'
import { CommandError, EXIT } from '../exit.ts'

/** The queues with the dead letters of a consumer. */
export interface AttachedQueues {
  readonly found: readonly DrainedQueue[]
  /** Queues that exist and have the default name, but are not read. */
  readonly unread: readonly DrainedQueue[]
  /** Settings of a source that reads them. */
  readonly place: {
    readonly queue: string
    readonly deadLetterQueues?: string[]
    readonly topology?: 'adopt'
  }
}

/**
 * Finds the queues with dead letters. A consumer with `topology: 'adopt'` has others than one that has declared its
 * queue. Throws if none exists: the name is wrong, or other software wrote the dead letters.
 */
export async function findQueues(
  url: string,
  queue: string,
  names: readonly string[] | undefined,
): Promise<AttachedQueues> {
  const count = (place: Omit<DeadLetterPlace, 'url' | 'queue'>) =>
    countDeadLetters({ url, queue, ...place })
  const adopted = await count({ topology: 'adopt' })
  const topology = adopted.some(doesExist) ? ({ topology: 'adopt' } as const) : {}
  if (names !== undefined) {
    const place = { queue, ...topology, deadLetterQueues: [...names] }
    return expectOne({ found: await count(place), unread: [], place })
  }
  const declared = await count({})
  if (adopted.some(doesExist))
    return { found: adopted, unread: declared.filter(doesExist), place: { queue, ...topology } }
  return expectOne({ found: declared, unread: [], place: { queue } }, adopted)
}

const doesExist = ({ depth }: DrainedQueue): boolean => depth !== undefined

function expectOne(queues: AttachedQueues, others: readonly DrainedQueue[] = []): AttachedQueues {
  const { found, place } = queues
  if (found.some(doesExist)) return queues
  const tried = [...found, ...others].map(({ name }) => name).join(', ')
  throw new CommandError(
    EXIT.notFound,
    `No queue with dead letters of "${place.queue}" exists: ${tried}. Nothing was started. Check the names and the address. If other software writes the dead letters, pass the names of their queues: --dead-letter-queue NAME. If a consumer of Redrive writes them, start it first: it creates the queue.`,
  )
}
