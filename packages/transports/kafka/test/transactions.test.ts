import { expect, test, vi } from 'vitest'
import { Committer } from '../src/consume/committer.ts'
import type { Consumption } from '../src/consume/consumption.ts'
import { CrashEvidence } from '../src/consume/crash-evidence.ts'
import { Partition } from '../src/consume/partition.ts'
import { Progress } from '../src/consume/progress.ts'
import type { KafkaRecord } from '../src/delivery.ts'
import type { HandOff } from '../src/enact.ts'
import type { ResolvedOptions } from '../src/options.ts'
import type { Commit, Offsets } from '../src/protocol/offsets.ts'
import { Transactions } from '../src/transactions.ts'

/** The broker's answer to the end of the transaction, given by the test. */
const ended = Promise.withResolvers<void>()

vi.mock('../src/producer.ts', () => ({
  closing: () => Promise.resolve(),
  forgetIfOutdated: () => undefined,
  producerOf: () => ({
    beginTransaction: () =>
      Promise.resolve({
        send: () => Promise.resolve(),
        addConsumer: () => Promise.resolve(),
        commit: () => ended.promise,
        cancel: () => Promise.resolve(),
      }),
  }),
}))

/** A world with one partition of one record, and all commits in order. */
function world() {
  const commits: { readonly kind: 'plain' | 'transaction'; readonly offset: number }[] = []
  const note = (kind: 'plain' | 'transaction', all: readonly Commit[]) => {
    for (const { offset } of all) commits.push({ kind, offset: Number(offset) })
    return Promise.resolve()
  }
  const offsets = {
    commit: (_: unknown, all: readonly Commit[]) => note('plain', all).then(() => new Set()),
    commitWith: (_: unknown, __: unknown, all: readonly Commit[]) => note('transaction', all),
  } as unknown as Offsets
  const partition = new Partition({
    topicPartition: { topic: 'orders', partition: 0 },
    tierMs: 0,
    progress: new Progress(0),
    deaths: new CrashEvidence(),
    position: 0,
    isOrdered: false,
    onTaken: () => undefined,
    onOutOfRange: () => Promise.resolve(),
  })
  const epoch = { member: 'm', generation: 1 } as never
  const committer = new Committer({
    offsets,
    epoch: () => epoch,
    partitions: () => [partition],
    isOurs: () => true,
    atRisk: () => 'none',
    onFenced: () => undefined,
    onResult: () => undefined,
  })
  const consumption = { committer, epoch, offsets, atRisk: () => 'none' } as unknown as Consumption
  const options = { topic: 'orders', group: 'g', client: {} } as ResolvedOptions
  return { commits, committer, partition, transactions: new Transactions(options, consumption) }
}

test('a commit that waits for a transaction includes what the transaction finished', async () => {
  const { commits, committer, partition, transactions } = world()
  const copy = { key: null, value: null, headers: [] }
  const handOff: HandOff = {
    to: { topic: 'orders.retry', partition: 0 },
    copy,
    done: { kind: 'done', destination: 'retry', truncated: 0 },
  }
  const sent = transactions.send(partition, { offset: 0 } as KafkaRecord, handOff)
  await vi.waitFor(() => expect(commits).toEqual([{ kind: 'transaction', offset: 1 }]))
  const committed = committer.flushAll()
  ended.resolve()
  await Promise.all([sent, committed])
  expect(commits).toEqual([
    { kind: 'transaction', offset: 1 },
    { kind: 'plain', offset: 1 },
  ])
})
