import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '@redrive/file-store'
import { createEmitter } from '@redrive/runtime'
import { recordingSink } from '@redrive/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { notingResends } from '../src/emission/resends.ts'

const directory = mkdtempSync(join(tmpdir(), 'redrive-resends-'))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('a send', () => {
  it('is recorded when the event was sent before, or comes from the store', async () => {
    let refuses = 1
    const sink = recordingSink({
      onSend: () => {
        if (refuses-- > 0) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' })
      },
    })
    const weak = notingResends('weak', sink)
    const emitter = createEmitter({
      sinks: { weak },
      store: fileStore({ directory }),
      queue: { maxEvents: 10, onFull: 'store' },
      rateLimit: { perSecond: 0.001, burst: 1 },
      filter: { keep: [/./] },
    })
    await emitter.emit({ type: 'order.paid', id: 'retried', data: 1 })
    expect(weak.resends.map(({ id }) => id)).toEqual(['retried'])
    // Over the limit: stored, and not sent until it is replayed.
    await emitter.emit({ type: 'order.paid', id: 'stored', data: 1 })
    await emitter.replay('stored/weak')
    expect(weak.resends.map(({ id }) => id)).toEqual(['retried', 'stored'])
    await emitter.close()
  })
})
