import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { seededRandom } from '@redrive/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { fileStore } from '../src/index.ts'
import { allOf, idsOf, Place } from './place.ts'
import { savedUnder } from './saver.ts'

const NODE = ['--conditions=@redrive/source', '--disable-warning=ExperimentalWarning']
/** Eight, because each starts a process; `REDRIVE_PROOFS=1` selects the long form, which runs every night. */
const KILLS = process.env['REDRIVE_PROOFS'] === undefined ? 8 : 20
const places: Place[] = []

afterEach(async () => {
  for (const place of places.splice(0)) await place.close()
})

async function madePlace(): Promise<Place> {
  const place = await Place.make()
  places.push(place)
  return place
}

/** Another process that saves until it is killed. */
class Saver {
  readonly #child: ChildProcess
  #text = ''
  readonly #count: number
  #isKilled = false

  constructor(directory: string, prefix: string, count: number) {
    this.#count = count
    const args = [...NODE, join(import.meta.dirname, 'saver.ts'), directory, prefix]
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child.stdout?.on('data', (data: Buffer) => this.#onOutput(data))
  }

  /** Returns the ids that were acknowledged before the kill. */
  async ids(): Promise<readonly string[]> {
    await once(this.#child, 'close')
    if (!this.#isKilled) throw new Error(`The process ended before it was killed: ${this.#text}`)
    return this.#text.split('\n').slice(0, -1)
  }

  #onOutput(data: Buffer): void {
    this.#text += data.toString()
    if (this.#isKilled || this.#text.split('\n').length <= this.#count) return
    this.#isKilled = true
    this.#child.kill('SIGKILL')
  }
}

async function expectWhole(directory: string, ids: readonly string[]): Promise<void> {
  const store = fileStore({ directory })
  const all = new Map((await allOf(store)).map((each) => [each.id, each]))
  for (const id of ids) {
    const found = all.get(id)
    expect({ id, isThere: found !== undefined }).toEqual({ id, isThere: true })
    const expected = savedUnder(id)
    expect(Buffer.compare(found?.event.bytes ?? Buffer.of(), expected.event.bytes)).toBe(0)
    expect(found).toMatchObject({ savedAt: expected.savedAt, cycle: expected.cycle })
  }
  await store.close()
}

describe('kill -9', () => {
  it(`keeps everything acknowledged, ${KILLS} times, two processes concurrently`, async () => {
    const { directory } = await madePlace()
    const random = seededRandom(6)
    const all: string[] = []
    for (let round = 0; round < KILLS / 2; round++) {
      const savers = ['a', 'b'].map((who) => {
        return new Saver(directory, `${who}${round}`, 1 + random.int(400))
      })
      const ids = (await Promise.all(savers.map((saver) => saver.ids()))).flat()
      await expectWhole(directory, ids)
      all.push(...ids)
    }
    const store = fileStore({ directory })
    const found = await idsOf(store)
    const there = new Set(found)
    expect(all.filter((id) => !there.has(id))).toEqual([])
    expect(there.size).toBe(found.length)
    expect((await store.stats()).count).toBe(found.length)
    await store.close()
  }, 120_000)
})

/** The block size of `ulimit -f` in sh. */
const BLOCK_BYTES = 512
const LIMIT_BLOCKS = 64

async function sizesIn(directory: string): Promise<readonly number[]> {
  const names = await readdir(directory, { recursive: true })
  const segments = names.filter((name) => name.endsWith('.jsonl'))
  return Promise.all(segments.map(async (name) => (await stat(join(directory, name))).size))
}

describe('a disk without room', () => {
  it('rejects the save with the fix, and later saves are complete', async () => {
    const { directory } = await madePlace()
    const child = [...NODE, join(import.meta.dirname, 'narrow.ts'), directory]
    const command = `ulimit -f ${LIMIT_BLOCKS}; exec "$0" "$@"`
    const output = execFileSync('sh', ['-c', command, process.execPath, ...child])
    const { answers, ids } = JSON.parse(output.toString()) as Record<string, readonly string[]>
    expect(answers).toEqual([
      'a saved',
      'b saved',
      'too large DLQ_FULL',
      'together with it saved',
      'c saved',
      'd saved',
    ])
    expect(ids).toEqual(['a', 'b', 'together with it', 'c', 'd'])
    // The torn part stays as it is, because another process may have read it.
    expect((await sizesIn(directory)).toSorted((one, other) => one - other)).toEqual([
      expect.any(Number),
      LIMIT_BLOCKS * BLOCK_BYTES,
    ])
    const store = fileStore({ directory })
    expect(await idsOf(store)).toEqual(['a', 'b', 'together with it', 'c', 'd'])
    await store.close()
  })
})
