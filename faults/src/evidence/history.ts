import { mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Kind } from './message.ts'

/**
 * One observation of a process, recorded when it happened. The checker reads only these and the
 * servers.
 */
export type Fact =
  // The producer.
  | { readonly what: 'attempted'; readonly id: string; readonly kind: Kind }
  | { readonly what: 'acknowledged'; readonly id: string }
  /** The broker rejected it: it was never accepted. */
  | { readonly what: 'refused'; readonly id: string }
  // A consumer.
  | { readonly what: 'ready' }
  | { readonly what: 'handler_started'; readonly id: string; readonly attempt: number }
  | { readonly what: 'failed'; readonly id: string; readonly attempt: number }
  /** The handler succeeded; `isNew` is false when the inbox already had the message. */
  | { readonly what: 'effect'; readonly id: string; readonly isNew: boolean }
  /**
   * The server confirmed that the message is done. Recorded where only the owner may get this
   * confirmation.
   */
  | { readonly what: 'settled'; readonly id: string }
  /** Position of the delivered record. A retried message has another position each time. */
  | { readonly what: 'delivered'; readonly id: string; readonly position: string }
  /** A replay was delivered to a consumer. */
  | { readonly what: 'replay_received'; readonly id: string; readonly replayId: string }
  /** Its group assigned these partitions to it in this generation. */
  | {
      readonly what: 'assigned'
      readonly group: string
      /** The topic that the member consumes: a process can have several members in a group. */
      readonly topic?: string
      readonly member: string
      readonly generation: number
      readonly places: readonly string[]
    }
  /** The group responded to its commit. */
  | {
      readonly what: 'commit'
      readonly group: string
      readonly member: string
      readonly generation: number
      readonly places: readonly string[]
      readonly sentAt: number
      readonly isAccepted: boolean
      /** Reason of a failure. */
      readonly note?: string
    }
  /** The process is about to kill itself at this point. */
  | { readonly what: 'dies'; readonly where: string }
  /** The process is about to stop at this point. */
  | { readonly what: 'stops'; readonly where: string }
  | { readonly what: 'event'; readonly type: string; readonly id?: string; readonly note?: string }
  | { readonly what: 'memory'; readonly bytes: number }
  /**
   * The process did not run during this time, or its server did not respond: the machine was
   * stalled.
   */
  | { readonly what: 'stood_still'; readonly from: number; readonly to: number }
  /** Durations of the queries with one name since the last report. */
  | { readonly what: 'queries'; readonly name: string; readonly ms: readonly number[] }
  // The harness.
  | { readonly what: 'spawned'; readonly process: string; readonly inFlight: number }
  /** The process is about to be killed. `exited` may follow seconds later. */
  | { readonly what: 'killed'; readonly process: string }
  | {
      readonly what: 'exited'
      readonly process: string
      /** True for every end except a requested one. */
      readonly isCrash: boolean
      /** The harness did not kill it, and it was working: an uncaught error ended it. */
      readonly isByItself?: boolean
      readonly inFlight: number
    }
  | {
      readonly what: 'fault'
      readonly phase: 'begins' | 'ends'
      readonly name: string
      /** In-flight deliveries that the broker may deliver again although no connection broke. */
      readonly interrupted: number
    }
  /** The second process took a message over from the first, and both continue. */
  | { readonly what: 'owners'; readonly first: string; readonly second: string }
  | { readonly what: 'healed' }
  /** The time since which the run is drained; it is noticed one check later. */
  | { readonly what: 'drained'; readonly at: number }
  /** A figure that only this scenario has. */
  | { readonly what: 'measured'; readonly name: string; readonly value: number }
  | { readonly what: 'note'; readonly text: string }

/** A fact with its time and its writer. */
export type Entry = Fact & { readonly at: number; readonly by: string }

export interface HistoryWriter {
  write(fact: Fact): void
}

/** The original clock. A scenario may change the clock of other code. */
export const trueNow: () => number = Date.now

/**
 * Opens one file per writer. Each write is immediate and synchronous, so a kill loses nothing that
 * was recorded before.
 */
export function openHistory(folder: string, by: string): HistoryWriter {
  mkdirSync(folder, { recursive: true })
  const file = openSync(join(folder, `${by}.jsonl`), 'a')
  return {
    write(fact) {
      writeSync(file, `${JSON.stringify({ at: trueNow(), by, ...fact })}\n`)
    },
  }
}

/** Returns all entries of a run, in order of time. */
export function readHistory(folder: string): readonly Entry[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const entries = files.flatMap((name) => readEntries(join(folder, name)))
  return entries.sort((a, b) => a.at - b.at)
}

function readEntries(path: string): readonly Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  // A complete line ends with a newline. Text after the last newline was cut off by a kill.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Entry)
}
