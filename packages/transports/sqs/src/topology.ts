/** The names of the queues that belong to a queue. Redrive creates missing queues. */
export interface Topology {
  /** The queue of the producers. It is never changed. */
  readonly queue: string
  readonly isFifo: boolean
  /** The dead-letter queue, unless the redrive policy of the queue names another one. It also contains quarantine. */
  readonly deadLetters: string
  /** Confirmations of replays. */
  readonly replayed: string
}

const FIFO = '.fifo'

/** Returns whether the name is that of a FIFO queue. SQS requires this ending. */
export const isFifoName = (name: string): boolean => name.endsWith(FIFO)

/** Returns the names of the queues of Redrive for a queue, given by name or address. */
export function topologyOf(queueOrUrl: string): Topology {
  const queue = nameOf(queueOrUrl)
  const isFifo = isFifoName(queue)
  const base = isFifo ? queue.slice(0, -FIFO.length) : queue
  return {
    queue,
    isFifo,
    // SQS requires the same type of queue.
    deadLetters: `${base}-dlq${isFifo ? FIFO : ''}`,
    // Standard, but not that of a standard queue with the same name.
    replayed: `${base}${isFifo ? '-fifo' : ''}-replayed`,
  }
}

/** Returns the name in a name, an address or an ARN. */
export function nameOf(place: string): string {
  return place.slice(Math.max(place.lastIndexOf('/'), place.lastIndexOf(':')) + 1)
}

/** Returns the account in an ARN. Undefined: a name or an address. */
export function accountOf(place: string): string | undefined {
  return place.startsWith('arn:') ? place.split(':')[4] : undefined
}

export const isUrl = (queue: string): boolean => /^https?:\/\//.test(queue)
