import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createEmitter, flushOnExit, nonFailing, type Sink } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { ready } from '../harness/process.ts'

export interface EndingProgram {
  readonly folder: string
  readonly durability: 'on_failure' | 'before_send'
  /** Number of events in one tick; undefined: emits until it is killed. */
  readonly burst: number | undefined
}

/**
 * Emits to a sink that records what it accepted. Records every event before it is emitted and after `emit` has
 * confirmed it. The harness ends this process.
 */
const { folder, durability, burst } = JSON.parse(process.argv[2] ?? '') as EndingProgram
const open = (name: string) => openSync(join(folder, name), 'a')
const [emitted, acknowledged, delivered] = [
  open('emitted'),
  open('acknowledged'),
  open('delivered'),
]
// One write for each line, so that every line in a file happened before the end of the process.
const note = (file: number, id: string) => void writeSync(file, `${id}\n`)

const sink: Sink = {
  name: 'sink',
  batch: 10,
  async send(events) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
    writeSync(delivered, events.map(({ id }) => `${id}\n`).join(''))
  },
  close: () => Promise.resolve(),
}
const emitter = createEmitter({
  sinks: { sink },
  store: fileStore({ directory: join(folder, 'store') }),
  queue: { maxEvents: 20_000, onFull: 'store' },
  durability,
})
flushOnExit(emitter, { drain: '100ms' })

async function emitOne(id: string): Promise<void> {
  note(emitted, id)
  await emitter.emit({ type: 'order.paid', id, data: { id } })
  note(acknowledged, id)
}

ready()
const prefix = `${process.pid}-${Date.now()}`
if (burst === undefined) {
  const lines = Array.from({ length: 10 }, async (_, line) => {
    for (let count = 0; ; count++) await emitOne(`${prefix}-${line}-${count}`)
  })
  await Promise.all(lines)
} else {
  nonFailing(() => {
    for (let count = 0; count < burst; count++) void emitOne(`${prefix}-${count}`)
  })
  process.send?.({ kind: 'emitted' })
}
