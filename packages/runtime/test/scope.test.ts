import { recordingSink } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { failing, nonFailing, nonFailingJob, nonFailingProcessor } from '../src/index.ts'
import { amounts, event, failingSink, settled, world } from './emit.ts'

const REFUSED = Object.assign(new Error('no'), { status: 400 })
const REFUSAL = { code: 'PAYLOAD_INVALID' }
const INVALID = event('order.paid', { amount: 'x' })

/** Yields to other tasks the given number of times. */
async function turns(count: number): Promise<void> {
  for (let time = 0; time < count; time++) await settled()
}

/** An emitter whose events are all invalid: emitting fails, except in a non-failing scope. */
const strict = () => world({ sink: recordingSink() }, { schemas: { 'order.paid': amounts } })

describe('scopes', () => {
  it('decide whether an emission may fail the work; the innermost one applies', async () => {
    const { emitter } = strict()
    const emit = () => emitter.emit(INVALID)
    await expect(emit()).rejects.toMatchObject(REFUSAL)
    await expect(nonFailing(emit)).resolves.toMatchObject({ sinks: { sink: { kind: 'queued' } } })
    await expect(nonFailing(() => failing(emit))).rejects.toMatchObject(REFUSAL)
    await expect(nonFailing(() => failing(() => nonFailing(emit)))).resolves.toBeDefined()
    await expect(emit()).rejects.toMatchObject(REFUSAL)
  })

  it('include everything that is awaited in them, and nothing else', async () => {
    const { emitter } = strict()
    const outside = turns(2).then(() => emitter.emit(INVALID))
    const inside = nonFailing(async () => {
      await turns(4)
      await Promise.all([emitter.emit(INVALID), turns(1).then(() => emitter.emit(INVALID))])
    })
    await expect(outside).rejects.toMatchObject(REFUSAL)
    await expect(inside).resolves.toBeUndefined()
  })

  it('do not leak between a thousand concurrent jobs with opposite settings', async () => {
    const { emitter, store } = strict()
    const jobs = Array.from({ length: 1_000 }, (_, index) => async () => {
      const scope = index % 2 === 0 ? nonFailing : failing
      const work = async () => {
        for (let step = 0; step < 3; step++) {
          await turns(step === 1 ? index % 7 : 1)
          await emitter.emit(INVALID)
        }
      }
      return scope(work, { job: `job-${index}` })
    })
    const results = await Promise.allSettled(jobs.map((job) => job()))
    expect(results.map(({ status }) => status)).toEqual(
      results.map((_, index) => (index % 2 === 0 ? 'fulfilled' : 'rejected')),
    )
    await settled()
    const kept = Map.groupBy(store.events, ({ job }) => job)
    expect(kept.size).toBe(500)
    for (const [job, events] of kept) {
      expect([Number(job?.slice(4)) % 2, events.length]).toEqual([0, 3])
    }
  })

  it('keep the name of the job when another scope is opened in it', async () => {
    const { sink, fail } = failingSink()
    const { emitter, store } = world({ sink })
    fail(REFUSED)
    await nonFailing(() => failing(() => emitter.emit(event('a'))), { job: 'outer' })
    await nonFailing(() => failing(() => emitter.emit(event('b')), { job: 'inner' }), {
      job: 'outer',
    })
    expect(store.events.map(({ job }) => job)).toEqual(['outer', 'inner'])
    expect(emitter.stats().jobs).toEqual({
      outer: { stored: 1, dropped: 0, lost: 0 },
      inner: { stored: 1, dropped: 0, lost: 0 },
    })
  })

  it('do not make a job wait for a sink', async () => {
    const sink = recordingSink({ onSend: () => new Promise(() => undefined) })
    const { emitter } = world({ sink })
    const result = await nonFailing(() => emitter.emit(event()))
    expect(result.sinks).toEqual({ sink: { kind: 'queued' } })
  })

  it('count a thousand job names, and all others together', async () => {
    const { sink, fail } = failingSink()
    const { emitter } = world({ sink })
    fail(REFUSED)
    for (let index = 0; index < 1_010; index++) {
      void nonFailing(() => emitter.emit(event()), { job: `job ${index}` })
    }
    for (let turn = 0; turn < 50; turn++) await settled()
    const { jobs } = emitter.stats()
    expect(Object.keys(jobs)).toHaveLength(1_001)
    expect(jobs['…']).toEqual({ stored: 10, dropped: 0, lost: 0 })
  })
})

describe('jobs', () => {
  it('keep their arguments, results and errors when wrapped', async () => {
    const { emitter, store } = strict()
    const job = nonFailingJob('nightly', async (first: number, second: number) => {
      await emitter.emit(INVALID)
      if (second === 0) throw new Error('divided by zero')
      return first / second
    })
    expect(await job(6, 3)).toBe(2)
    await expect(job(6, 0)).rejects.toThrow('divided by zero')
    await settled()
    expect(store.events.map((one) => one.job)).toEqual(['nightly', 'nightly'])
  })

  it('of a worker are counted under their own names', async () => {
    const { emitter, store } = strict()
    const process = nonFailingProcessor(
      async (job: { name: string; data: number }, token: string) => {
        await emitter.emit(INVALID)
        return `${job.data} ${token}`
      },
    )
    expect(await process({ name: 'charge', data: 5 }, 'token')).toBe('5 token')
    await settled()
    expect(store.last?.job).toBe('charge')
  })
})
