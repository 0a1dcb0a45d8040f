import { afterEach, describe, expect, it } from 'vitest'
import { type Contender, openAll } from '../src/emission/contender.ts'
import { orderPaid } from '../src/emission/event.ts'
import { withFetch, withHttp } from '../src/emission/handwritten.ts'
import { pinoLoki, winstonLoki } from '../src/emission/loggers.ts'
import { LokiProcess } from '../src/emission/loki.ts'
import { paced } from '../src/emission/pace.ts'
import { FIXED, redrive } from '../src/emission/redrive.ts'
import { appending, storing } from '../src/emission/storing.ts'
import type { Candidate } from '../src/harness.ts'

/** Not a multiple of a batch, so the last one is not full. */
const COUNT = 250

let opened: Candidate[] = []
afterEach(async () => {
  for (const candidate of opened.splice(0)) await candidate.close?.()
})

type Open = (url: string) => Promise<Contender> | Contender

async function sampled(open: Open, copies = 1): Promise<Candidate> {
  opened = await openAll([{ name: 'it', open, copies }])
  const candidate = opened[0] as Candidate
  await candidate.prepare?.(COUNT)
  await candidate.run(COUNT)
  return candidate
}

describe('a candidate that emits', () => {
  it.each([
    ['fetch', withFetch, 1],
    ['node:http', withHttp, 1],
    ['redrive', redrive({ policy: FIXED }), 1],
    ['redrive with three sinks', redrive({ policy: FIXED, sinks: 3 }), 3],
    ['pino', pinoLoki, 1],
    ['winston', winstonLoki, 1],
  ] as const)(
    '%s delivers every event to the server',
    { timeout: 30_000 },
    async (_, open, copies) => {
      const candidate = await sampled(open, copies)
      await expect(candidate.verify?.(COUNT)).resolves.toBeUndefined()
    },
  )

  it('fails its check when events arrived twice', { timeout: 30_000 }, async () => {
    const twice: Open = (url) => {
      const contender = withFetch(url)
      return { ...contender, emit: (count) => contender.emit(count * 2) }
    }
    const candidate = await sampled(twice)
    await expect(candidate.verify?.(COUNT)).rejects.toThrow('500 entries instead of 250')
  })
})

describe('the server', () => {
  it.each([
    ['no streams', {}],
    ['a label that is not text', { streams: [{ stream: { a: 1 }, values: [] }] }],
    ['a time that is a number', { streams: [{ stream: {}, values: [[1, 'line']] }] }],
    ['a time that is not in nanoseconds', { streams: [{ stream: {}, values: [['1', 'line']] }] }],
    [
      'metadata that is not text',
      { streams: [{ stream: {}, values: [['1'.repeat(19), 'line', { id: 1 }]] }] },
    ],
  ])('rejects a push with %s, and counts nothing', { timeout: 30_000 }, async (_, body) => {
    const loki = await LokiProcess.start()
    const response = await fetch(`${loki.url}/loki/api/v1/push`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    expect(response.status).toBe(400)
    expect(await loki.count()).toBe(0)
    loki.close()
  })
})

describe('a candidate that stores', () => {
  it.each([
    ['the file', appending],
    ['redrive', storing],
  ] as const)('%s has every event', { timeout: 30_000 }, async (name, open) => {
    const candidate = await open(name)
    opened = [candidate]
    await candidate.prepare?.(COUNT)
    await candidate.run(COUNT)
    await expect(candidate.verify?.(COUNT)).resolves.toBeUndefined()
  })

  it.each([
    ['the file', appending, '250 lines instead of 251'],
    ['redrive', storing, '250 stored instead of 251'],
  ] as const)(
    '%s fails its check when an event is missing',
    { timeout: 30_000 },
    async (name, open, why) => {
      const candidate = await open(name)
      opened = [candidate]
      await candidate.prepare?.(COUNT)
      await candidate.run(COUNT)
      await expect(candidate.verify?.(COUNT + 1)).rejects.toThrow(why)
    },
  )
})

describe('an emitted event', () => {
  it('has about 300 bytes', () => {
    expect(JSON.stringify(orderPaid(1)).length).toBeGreaterThan(280)
    expect(JSON.stringify(orderPaid(99_999)).length).toBeLessThan(320)
  })

  it('is never more than eleven batches ahead of the finished ones', async () => {
    const ends: (() => void)[] = []
    let emitted = 0
    const done = paced(2_000, () => {
      emitted += 1
      return new Promise<void>((resolve) => ends.push(resolve))
    })
    await Promise.resolve()
    expect(emitted).toBe(1_100)
    for (let at = 0; at < 2_000; at += 100) {
      for (const end of ends.slice(at, at + 100)) end()
      await new Promise(setImmediate)
    }
    await done
    expect(emitted).toBe(2_000)
  })
})
