import { RedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { Batcher } from '../src/batcher.ts'
import { isNotOwned, Requests } from '../src/requests.ts'
import type { SqsClient } from '../src/index.ts'

/** Entries that SQS rejects. */
const respond = (Failed: readonly object[]) =>
  new Requests({ send: (() => Promise.resolve({ Failed })) as unknown as SqsClient['send'] }, 1_000)

/** 1 MiB, the limit of SQS for a batch. */
const MAX_BYTES = 1_048_576

describe('a batch', () => {
  it('that SQS accepts only in part rejects only the other entries', async () => {
    const requests = respond([{ Id: '1', Code: 'InternalError', Message: 'try again' }])
    const batcher = new Batcher<string>({
      send: (bodies) =>
        requests.send(
          'url',
          bodies.map((body) => ({ body, attributes: {} })),
        ),
    })
    const ends = await Promise.allSettled(['a', 'b', 'c'].map((body) => batcher.add(body)))
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  it('of deletions distinguishes a stale receipt handle from other failures', async () => {
    const requests = respond([
      { Id: '0', Code: 'ReceiptHandleIsInvalid' },
      { Id: '1', Code: 'InternalError' },
    ])
    const results = await requests.delete('url', ['a', 'b', 'c'])
    expect(results.map(isNotOwned)).toEqual([true, false, false])
    expect(results[1]).toBeInstanceOf(RedriveError)
    expect(results[2]).toBeUndefined()
    const [sent] = await respond([{ Id: '0', Code: 'InvalidParameterValue' }]).send('url', [
      { body: 'a', attributes: {} },
    ])
    expect(isNotOwned(sent)).toBe(false)
  })

  it('has at most ten entries and at most the bytes that SQS allows', async () => {
    const batches: string[][] = []
    const batcher = new Batcher<string>({
      send: (entries) => {
        batches.push([...entries])
        return Promise.resolve(entries.map(() => undefined))
      },
      sizeOf: (entry) => (entry === 'large' ? MAX_BYTES - 1 : 1),
    })
    const entries = ['large', 'a', 'b', ...Array.from({ length: 12 }, (_, index) => String(index))]
    await Promise.all(entries.map((entry) => batcher.add(entry)))
    expect(batches.flat()).toEqual(entries)
    expect(batches[0]).toEqual(['large', 'a'])
    expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(10)
  })
})
