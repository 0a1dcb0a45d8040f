/**
 * A process of the control plane with one role. It runs until it is killed or stopped by the
 * harness.
 */
import { flushCompileCache } from 'node:module'
import { setTimeout as after } from 'node:timers/promises'
import { catalog, type ReplayRequest } from '@redrive/catalog'
import { handledKeys } from '@redrive/postgres'
import { openDatabase } from '../harness/effects.ts'
import { brokerOf } from './brokers/broker.ts'
import { Failpoints } from './failpoints.ts'
import type { Role, WorkerMessage, WorkerOptions } from './options.ts'

const options = JSON.parse(process.argv[2] ?? '') as WorkerOptions
const { kind, queue, role, request, approver = '' } = options
const failpoints = new Failpoints(options.failpoint)
const books = openDatabase(options.consumerUrl)
const control = catalog({ pool: failpoints.pool(options.catalogUrl) })

const report = (message: WorkerMessage) => void process.send?.(message)
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
  // A killed process saves nothing at its end, so the cache is written now.
  flushCompileCache()
  report({ kind: 'ready' })
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
      if (turn !== undefined) report({ kind: 'turn', turn })
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
    report({ kind: 'planned', run })
    await new Promise((resolve) => process.once('message', resolve))
    const { id, hash } = run
    report({ kind: 'approved', run: await control.replays.approve(id, { hash, by: approver }) })
  },
}

// The harness has ended, so no other process would stop this one.
process.on('disconnect', () => process.exit(1))
try {
  await ROLES[role]()
} catch (error) {
  report({ kind: 'refused', message: error instanceof Error ? error.message : String(error) })
}
