import { ProtocolError, TimeoutError } from '@platformatic/kafka'
import type { ProduceFaults } from './consumer-options.ts'
import { nameOfRequest, type OnRequest } from './requests.ts'

/** Errors that a cluster returns while a leader moves or a copy is slow. */
const ERRORS = [
  'NOT_LEADER_OR_FOLLOWER',
  'REQUEST_TIMED_OUT',
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'KAFKA_STORAGE_ERROR',
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
] as const

export type ProduceFault = Exclude<keyof ProduceFaults, 'seed'>

const FAULTS: readonly ProduceFault[] = ['refused', 'misreported', 'swallowed', 'unanswered']

/** Breaks requests that carry copies; the same seed breaks the same ones. */
export function breakingCopies(
  faults: ProduceFaults,
  timeoutMs: number,
  onFault: (fault: ProduceFault) => void,
): OnRequest {
  const random = randomOf(faults.seed)
  return (request) => {
    const fault = nameOfRequest(request.apiKey) === 'produce' ? chosen(faults, random()) : undefined
    if (fault === undefined) return request.send()
    onFault(fault)
    const error = () => new ProtocolError(ERRORS[Math.floor(random() * ERRORS.length)] ?? ERRORS[0])
    // Fails as the client library does when no response arrives in time.
    const giveUp = () =>
      setTimeout(() => request.callback(new TimeoutError('No answer.')), timeoutMs)
    if (fault === 'refused') setImmediate(() => request.callback(error()))
    if (fault === 'misreported') request.send(() => request.callback(error()))
    if (fault === 'swallowed') giveUp()
    if (fault === 'unanswered') request.send(giveUp)
  }
}

export function chosen(faults: ProduceFaults, random: number): ProduceFault | undefined {
  let left = random * 100
  for (const fault of FAULTS) {
    left -= faults[fault]
    if (left < 0) return fault
  }
  return undefined
}

/** Returns pseudo-random numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
