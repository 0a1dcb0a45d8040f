import { Writer, offsetCommitV9, syncGroupV5 } from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { dyingAt } from '../src/kafka/failpoints.ts'
import { breakingCopies, chosen, randomOf } from '../src/kafka/produce-faults.ts'
import type { Request } from '../src/kafka/requests.ts'
import {
  finishedAbove,
  readAssignment,
  readCommit,
  readStored,
  readSync,
} from '../src/kafka/wire-format.ts'

const bytesOf = (made: unknown) => (made as { readonly buffer: Buffer }).buffer

describe('the group requests of consumers', () => {
  it('are read from a commit', () => {
    const partition = (partitionIndex: number) => ({
      partitionIndex,
      committedOffset: 7n,
      committedLeaderEpoch: -1,
      committedMetadata: '1.AQM',
    })
    const topics = [{ name: 'orders', partitions: [partition(0), partition(300)] }]
    const made = offsetCommitV9.createRequest('billing', 12, 'one', null, topics)
    const places = ['orders/0', 'orders/300']
    expect(readCommit(bytesOf(made))).toEqual({
      group: 'billing',
      member: 'one',
      generation: 12,
      places,
    })
  })

  it('are read from a sync and its response', () => {
    const made = syncGroupV5.createRequest('billing', 3, 'one', null, 'consumer', 'sticky', [])
    expect(readSync(bytesOf(made))).toEqual({ group: 'billing', member: 'one', generation: 3 })
    const assignment = Writer.create()
      .appendInt16(3)
      .appendArray(
        ['orders'],
        (w, topic) =>
          w
            .appendString(topic, false)
            .appendArray([4, 5], (w, p) => void w.appendInt32(p), false, false),
        false,
        false,
      )
    expect(readAssignment(bytesOf(assignment))).toEqual(['orders/4', 'orders/5'])
    expect(readAssignment(Buffer.alloc(0))).toEqual([])
  })

  it.each([3, 4])('are read as the cluster stores them, version %i', (version) => {
    const isCompact = version === 4
    const key = Writer.create()
      .appendInt16(1)
      .appendString('billing', false)
      .appendString('orders', false)
      .appendInt32(2)
    const value = Writer.create()
      .appendInt16(version)
      .appendInt64(70n)
      .appendInt32(-1)
      .appendString('1.AQM', isCompact)
      .appendInt64(99n)
    const commit = { group: 'billing', place: 'orders/2', mark: 70, metadata: '1.AQM', at: 99 }
    expect(readStored(bytesOf(key), bytesOf(value))).toEqual(commit)
    expect(finishedAbove(commit)).toEqual([[71, 74]])
    expect(finishedAbove({ ...commit, metadata: 'of another library' })).toEqual([])
  })
})

const PRODUCE = 0
const HEARTBEAT = 12

function requestOf(apiKey: number, steps: string[]): Request {
  return {
    apiKey,
    payload: () => Buffer.from('orders.billing.dlq'),
    send: (answered) => {
      steps.push('sent')
      answered?.(null, {})
    },
    callback: (error) => void steps.push(error === null ? 'received' : 'received an error'),
    connection: { socket: { bytesWritten: 0 } } as unknown as Request['connection'],
  }
}

describe('a request at which a process dies', () => {
  const storyOf = (when: 'before' | 'answered' | 'received', topic: string) => {
    const steps: string[] = []
    const die = (where: string): never => {
      steps.push(`dies at ${where}`)
      throw new Error('dead')
    }
    const onRequest = dyingAt({ request: 'produce', when, topic }, die)
    for (const apiKey of [HEARTBEAT, PRODUCE]) {
      try {
        onRequest(requestOf(apiKey, steps))
      } catch {
        break
      }
    }
    return steps
  }

  it('is the selected one, at the selected point', () => {
    expect(storyOf('before', '.dlq')).toEqual(['sent', 'dies at produce before'])
    expect(storyOf('answered', '.dlq')).toEqual(['sent', 'sent', 'dies at produce answered'])
    expect(storyOf('received', '.dlq')).toEqual([
      'sent',
      'sent',
      'received',
      'dies at produce received',
    ])
    expect(storyOf('before', '.retry.')).toEqual(['sent', 'sent'])
  })
})

describe('broken copies', () => {
  const faults = { seed: 1, refused: 50, misreported: 20, swallowed: 0, unanswered: 10 }

  it('have the requested number, and are the same for the same seed', () => {
    expect([0, 0.49, 0.5, 0.69, 0.7, 0.79, 0.8].map((random) => chosen(faults, random))).toEqual([
      'refused',
      'refused',
      'misreported',
      'misreported',
      'unanswered',
      'unanswered',
      undefined,
    ])
    const numbers = (seed: number) => Array.from({ length: 5 }, randomOf(seed))
    expect(numbers(3)).toEqual(numbers(3))
    expect(numbers(3)).not.toEqual(numbers(4))
  })

  it('affect only copies', () => {
    const steps: string[] = []
    const all = { seed: 1, refused: 0, misreported: 100, swallowed: 0, unanswered: 0 }
    const onRequest = breakingCopies(all, 10, (fault) => void steps.push(fault))
    onRequest(requestOf(HEARTBEAT, steps))
    onRequest(requestOf(PRODUCE, steps))
    expect(steps).toEqual(['sent', 'misreported', 'sent', 'received an error'])
  })
})
