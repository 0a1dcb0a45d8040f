import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '@redrive/file-store'
import { createEmitter, type SinkPolicy } from '@redrive/runtime'
import { loki } from '@redrive/sinks'
import type { Contender } from './contender.ts'
import { orderPaid, TYPE } from './event.ts'
import { BATCH, paced, REQUESTS } from './pace.ts'

/** The same number of concurrent requests as the others have, from the first event on. */
export const FIXED: SinkPolicy = { adaptiveConcurrency: 'off', concurrency: REQUESTS }

/** 2,000: more than are ever in flight here, so a full queue does not affect the figure. */
const QUEUE = { maxEvents: 2_000, onFull: 'wait' } as const

interface Setup {
  readonly policy: SinkPolicy
  /** Number of sinks, all with the same server. Default 1. */
  readonly sinks?: number
}

export const redrive =
  ({ policy, sinks = 1 }: Setup) =>
  async (url: string): Promise<Contender> => {
    const directory = await mkdtemp(join(tmpdir(), 'redrive-benchmark-'))
    const sink = () => loki({ url, batch: BATCH, labels: { service_name: 'bench' } })
    const emitter = createEmitter({
      sinks: Object.fromEntries(Array.from({ length: sinks }, (_, at) => [`loki-${at}`, sink()])),
      // Not used here, and it must cost nothing then.
      store: fileStore({ directory }),
      queue: QUEUE,
      policy,
    })
    return {
      emit: (count) =>
        paced(count, (number) => emitter.emit({ type: TYPE, data: orderPaid(number) })),
      async close() {
        await emitter.close()
        await rm(directory, { recursive: true })
      },
    }
  }
