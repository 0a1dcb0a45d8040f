import { until } from '@redrive/testing'
import { expect, it } from 'vitest'
import { Assignment, type AssignmentDeps } from '../src/consume/assignment.ts'

const NOT_USED = () => expect.unreachable()

/** An assignment of the topic `orders`, without a broker. Partitions from 1 on need preparation, which fails. */
function unprepared() {
  const problems: unknown[] = []
  const topic = { id: 'id', partitionsCount: 2, partitions: [] }
  const committed = new Map([0, 1].map((at) => [`orders/${at}`, { offset: 3, metadata: '' }]))
  const deps = {
    client: {
      metadataWithMissing: () => Promise.resolve({ topics: new Map([['orders', topic]]) }),
    },
    offsets: { read: () => Promise.resolve(committed) },
    committer: { flush: () => Promise.resolve() },
    topics: [{ name: 'orders', tierMs: 0, isOrdered: false, from: 'earliest' }],
    drainMs: 0,
    isOurs: () => true,
    isFenced: () => false,
    needsPreparation: ({ partition }: { readonly partition: number }) => partition > 0,
    prepare: () => Promise.reject(new Error('orders.billing.dlq has 1 partition')),
    onStarted: () => undefined,
    onTaken: NOT_USED,
    onForgotten: () => undefined,
    onExpired: NOT_USED,
    onRecreated: NOT_USED,
    onResult: (_: string, error: unknown) => problems.push(error),
  }
  return { assignment: new Assignment(deps as unknown as AssignmentDeps), problems }
}

it('a partition that cannot be prepared is reported, and does not block the others', async () => {
  const { assignment, problems } = unprepared()
  const starting = assignment.start([
    { topic: 'orders', partition: 0 },
    { topic: 'orders', partition: 1 },
  ])
  await until('a partition starts', () => [...assignment.partitions].length > 0)
  expect([...assignment.partitions].map(({ partition }) => partition)).toEqual([0])
  expect(problems).toContainEqual(new Error('orders.billing.dlq has 1 partition'))
  assignment.close()
  await starting
})
