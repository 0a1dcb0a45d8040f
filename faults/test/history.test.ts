import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { openHistory, readHistory } from '../src/evidence/history.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-history-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('a history', () => {
  it('is read from all writers, without a line cut off by a kill', () => {
    openHistory(folder, 'producer').write({ what: 'acknowledged', id: 'a' })
    openHistory(folder, 'consumer-1').write({ what: 'effect', id: 'a', isNew: true })
    appendFileSync(join(folder, 'consumer-1.jsonl'), '{"at":1,"by":"consumer-1","wh')
    const entries = readHistory(folder)
    expect(entries.map(({ by, what }) => `${by} ${what}`).sort()).toEqual([
      'consumer-1 effect',
      'producer acknowledged',
    ])
  })
})
