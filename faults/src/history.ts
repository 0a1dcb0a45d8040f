import { mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Kind } from './message.ts'

/** What one process saw, written down as it happened. The checker reads this and the servers, nothing else. */
export type Fact =
  // The producer.
  | { readonly what: 'attempted'; readonly id: string; readonly kind: Kind }
  | { readonly what: 'acknowledged'; readonly id: string }
  /** The broker said no: it was never accepted. */
  | { readonly what: 'refused'; readonly id: string }
  // A consumer.
  | { readonly what: 'ready' }
  | { readonly what: 'handler_started'; readonly id: string; readonly attempt: number }
  | { readonly what: 'failed'; readonly id: string; readonly attempt: number }
  /** The handler ran to success; `isNew` is false when the inbox had seen it before. */
  | { readonly what: 'effect'; readonly id: string; readonly isNew: boolean }
  /** The server confirmed that it is done with. Written where only its owner may be told so. */
  | { readonly what: 'settled'; readonly id: string }
  /** Where the record is that was handed out: a message that is retried is at another place each time. */
  | { readonly what: 'delivered'; readonly id: string; readonly position: string }
  /** A replay was handed to a consumer. */
  | { readonly what: 'replay_received'; readonly id: string; readonly replayId: string }
  /** Its group has given it these partitions, in this round. */
  | {
      readonly what: 'assigned'
      readonly group: string
      readonly member: string
      readonly generation: number
      readonly places: readonly string[]
    }
  /** It told its group how far it has come; the answer is there. */
  | {
      readonly what: 'commit'
      readonly group: string
      readonly member: string
      readonly generation: number
      readonly places: readonly string[]
      readonly sentAt: number
      readonly isAccepted: boolean
      /** Why not. */
      readonly note?: string
    }
  /** It is about to kill itself, here. */
  | { readonly what: 'dies'; readonly where: string }
  /** It is about to stand still, here. */
  | { readonly what: 'stops'; readonly where: string }
  | { readonly what: 'event'; readonly type: string; readonly id?: string; readonly note?: string }
  | { readonly what: 'memory'; readonly bytes: number }
  /** It was not run from then to then, or its server did not answer: the machine had other things to do. */
  | { readonly what: 'stood_still'; readonly from: number; readonly to: number }
  /** How long the queries of one name took since this was last said. */
  | { readonly what: 'queries'; readonly name: string; readonly ms: readonly number[] }
  // The harness.
  | { readonly what: 'spawned'; readonly process: string; readonly inFlight: number }
  /** It is about to be killed: `exited` may be written seconds later. */
  | { readonly what: 'killed'; readonly process: string }
  | {
      readonly what: 'exited'
      readonly process: string
      /** True for every end but the one it was asked for. */
      readonly isCrash: boolean
      /** Nobody killed it, and it was at work: an error that nothing caught. */
      readonly isByItself?: boolean
      readonly inFlight: number
    }
  | {
      readonly what: 'fault'
      readonly phase: 'begins' | 'ends'
      readonly name: string
      /** Deliveries in hand that the broker may hand out again without anybody's connection breaking. */
      readonly interrupted: number
    }
  /** The second took a message over from the first, and both go on. */
  | { readonly what: 'owners'; readonly first: string; readonly second: string }
  | { readonly what: 'healed' }
  /** With the moment since when: that it was over is known one look later. */
  | { readonly what: 'drained'; readonly at: number }
  /** A figure that only this scenario has. */
  | { readonly what: 'measured'; readonly name: string; readonly value: number }
  | { readonly what: 'note'; readonly text: string }

/** A fact with its moment and who wrote it. */
export type Entry = Fact & { readonly at: number; readonly by: string }

export interface HistoryWriter {
  write(fact: Fact): void
}

/** As the clock was when the process began: a scenario may tamper with the one that others use. */
export const trueNow: () => number = Date.now

/** One file per writer. Written at once and synchronously: what a killed process had seen must not die with it. */
export function openHistory(folder: string, by: string): HistoryWriter {
  mkdirSync(folder, { recursive: true })
  const file = openSync(join(folder, `${by}.jsonl`), 'a')
  return {
    write(fact) {
      writeSync(file, `${JSON.stringify({ at: trueNow(), by, ...fact })}\n`)
    },
  }
}

/** All entries of a run, in the order of their moments. */
export function readHistory(folder: string): readonly Entry[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const entries = files.flatMap((name) => readEntries(join(folder, name)))
  return entries.sort((a, b) => a.at - b.at)
}

function readEntries(path: string): readonly Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  // A whole line ends with a newline: what follows the last one was cut off by a kill.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Entry)
}
