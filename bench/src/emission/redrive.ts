import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '@redrive/file-store'
import { createEmitter, type SinkPolicy } from '@redrive/runtime'
import { loki } from '@redrive/sinks'
import type { Contender } from './contender.ts'
import { orderPaid, TYPE } from './event.ts'
import { BATCH, paced, REQUESTS } from './pace.ts'

/** As many requests at once as the others have, from the first event on. */
export const FIXED: SinkPolicy = { limit: 'off', concurrency: REQUESTS }

/** 2,000: more than are ever on their way here, so a full queue is no part of the figure. */
const QUEUE = { most: 2_000, whenFull: 'wait' } as const

interface Setup {
  readonly policy: SinkPolicy
  /** So many sinks, all of them the same server. Default 1. */
  readonly sinks?: number
}

export const redrive =
  ({ policy, sinks = 1 }: Setup) =>
  async (url: string): Promise<Contender> => {
    const directory = await mkdtemp(join(tmpdir(), 'redrive-benchmark-'))
    const sink = () => loki({ url, batch: BATCH, labels: { service_name: 'bench' } })
    const emitter = createEmitter({
      sinks: Object.fromEntries(Array.from({ length: sinks }, (_, at) => [`loki-${at}`, sink()])),
      // Never needed here, and it must cost nothing then.
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
