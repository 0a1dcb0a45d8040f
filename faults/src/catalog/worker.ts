/** A process of the control plane: one of its roles, until it is killed or told to stop. */
import { flushCompileCache } from 'node:module'
import { setTimeout as after } from 'node:timers/promises'
import { catalog, type ReplayRequest } from '@redrive/catalog'
import { handledKeys } from '@redrive/postgres'
import { openDatabase } from '../effects.ts'
import { brokerOf } from './brokers/broker.ts'
import { Failpoints } from './failpoints.ts'
import type { Role, Told, WorkerOptions } from './options.ts'

const options = JSON.parse(process.argv[2] ?? '') as WorkerOptions
const { kind, queue, role, request, approver = '' } = options
const failpoints = new Failpoints(options.failpoint)
const books = openDatabase(options.consumerUrl)
const control = catalog({ pool: failpoints.pool(options.catalogUrl) })

const tell = (told: Told) => void process.send?.(told)
/** Small batches, so that there are several. */
const BATCH = 10
const LOOK_MS = 20

async function again(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    await work()
    await after(LOOK_MS)
  }
}

async function working() {
  const source = failpoints.source((await brokerOf(kind)).source(options, books))
  const handled = (keys: readonly string[]) => handledKeys(books, { consumer: queue, keys })
  const replayer = control.replays.replayer({ sources: [{ source, handled }] })
  // Whoever is killed saves nothing at its end.
  flushCompileCache()
  tell({ kind: 'ready' })
  return { source, replayer }
}

const ROLES: Readonly<Record<Role, () => Promise<void>>> = {
  async ingest() {
    const { source } = await working()
    await again(() => control.ingest(source, { batch: BATCH }))
  },
  async publish() {
    const { replayer } = await working()
    await again(async () => {
      const turn = await replayer.turn()
      if (turn !== undefined) tell({ kind: 'turn', turn })
    })
  },
  async settle() {
    const { replayer } = await working()
    await again(async () => {
      await replayer.confirm()
      await replayer.sweep()
    })
  },
  async operator() {
    flushCompileCache()
    const run = await control.replays.plan(request as ReplayRequest)
    tell({ kind: 'planned', run })
    await new Promise((resolve) => process.once('message', resolve))
    const { id, hash } = run
    tell({ kind: 'approved', run: await control.replays.approve(id, { hash, by: approver }) })
  },
}

// The harness is gone, and nobody would stop us any more.
process.on('disconnect', () => process.exit(1))
try {
  await ROLES[role]()
} catch (error) {
  tell({ kind: 'refused', message: error instanceof Error ? error.message : String(error) })
}
