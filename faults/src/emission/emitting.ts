import { randomBytes, randomUUID } from 'node:crypto'
import { openSync, writeSync } from 'node:fs'
import { createEmitter } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { ready } from '../harness/process.ts'
import { down } from './down.ts'

export interface Emitting {
  readonly directory: string
  readonly ledger: string
}

/**
 * Emits to a sink that is down and records every event confirmed as stored. The harness kills this
 * process.
 */
const { directory, ledger } = JSON.parse(process.argv[2] ?? '') as Emitting
const emitter = createEmitter({
  sinks: { down },
  store: fileStore({ directory }),
  queue: { maxEvents: 1_000, onFull: 'wait' },
})
const file = openSync(ledger, 'a')

async function emitOne(): Promise<void> {
  // Bytes that are not text, in sizes from zero to some pages.
  const bytes = randomBytes(Math.floor(Math.random() ** 3 * 10_000) + 1)
  const id = randomUUID()
  const { sinks } = await emitter.emit({ type: 'drill', id, data: bytes })
  if (sinks['down']?.kind !== 'stored') return
  // One write before anything else. So every line in the file was acknowledged.
  writeSync(file, `${id} ${bytes.toString('base64')} end\n`)
}

ready()
const lines = Array.from({ length: 10 }, async () => {
  for (;;) await emitOne()
})
await Promise.all(lines)
