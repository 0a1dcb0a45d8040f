import { randomBytes, randomUUID } from 'node:crypto'
import { openSync, writeSync } from 'node:fs'
import { createEmitter } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { down } from './down.ts'

/** Emits to a sink that is down, and writes down what it was told to be stored. It is killed for it. */
const [directory = '', ledger = ''] = process.argv.slice(2)
const emitter = createEmitter({
  sinks: { down },
  store: fileStore({ directory }),
  queue: { most: 1_000, whenFull: 'wait' },
})
const file = openSync(ledger, 'a')

async function emitOne(): Promise<void> {
  // Bytes that are no text, of every size from nothing to some pages.
  const bytes = randomBytes(Math.floor(Math.random() ** 3 * 10_000) + 1)
  const id = randomUUID()
  const { sinks } = await emitter.emit({ type: 'drill', id, data: bytes })
  if (sinks['down']?.kind !== 'stored') return
  // One write, before anything else is done: what is in the file was acknowledged.
  writeSync(file, `${id} ${bytes.toString('base64')} end\n`)
}

process.send?.('ready')
const lines = Array.from({ length: 10 }, async () => {
  for (;;) await emitOne()
})
await Promise.all(lines)
