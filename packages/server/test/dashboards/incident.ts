import { until } from '@redrive/testing'
import type { ServerProcess } from '../serve-stage.ts'
import type { Kind, Shop } from './shop.ts'

/** Sent once each round: mostly good orders. */
const ROUND: readonly Kind[] = [...Array.from({ length: 8 }, (): Kind => 'good'), 'flaky', 'flaky']
/** Sent in the first rounds, so that their outcomes exist before the replay. */
const FAULTY: readonly Kind[] = ['declined', 'declined', 'wrong', 'stuck']
/** 500 ms between rounds, and four times that number of seconds of load at the end. */
const ROUND_MS = 500
/** 30 s before the outage, 15 s of it, and 45 s with the replay. */
const ROUNDS = { calm: 60, outage: 30, recovery: 90 }

interface Groups {
  readonly groups: readonly { readonly id: string; readonly class: string }[]
}
interface Run {
  readonly id: string
  readonly hash: string
  readonly state: string
}

/** Faulty orders, an outage of the dependency and of a sink, the recovery, and a replay. */
export async function playIncident(shop: Shop, server: ServerProcess): Promise<void> {
  const look = () => server.json('/api/v1/overview')
  await rounds(ROUNDS.calm, async (round) => {
    load(shop, round < 20 ? [...ROUND, ...FAULTY] : ROUND)
    await look()
  })
  shop.isOut = shop.isSinkDown = true
  await rounds(ROUNDS.outage, () => {
    load(shop, ROUND)
    return look()
  })
  shop.isOut = shop.isSinkDown = false
  shop.isFixed = true
  const run = await startReplay(server)
  const seen = () => server.json<Run>(`/api/v1/replays/${run.id}`)
  await rounds(ROUNDS.recovery, async () => {
    load(shop, ROUND)
    await Promise.all([look(), seen()])
  })
  await until('the replay has ended', seen, {
    accept: ({ state }) => state === 'done',
    timeout: '1m',
  })
}

function load(shop: Shop, kinds: readonly Kind[]): void {
  for (const kind of kinds) shop.place(kind)
  for (let event = 0; event < 8; event++) shop.emit()
}

/** Runs the work in each round, in time: the curves of a dashboard need time to pass. */
async function rounds(count: number, work: (round: number) => unknown): Promise<void> {
  for (let round = 0; round < count; round++) {
    const endsAt = performance.now() + ROUND_MS
    await work(round)
    await until('the end of the round', () => performance.now() >= endsAt)
  }
}

/** Replays the declined orders. Half of them are declined again. */
async function startReplay(server: ServerProcess): Promise<Run> {
  const { groups } = await until(
    'the declined orders',
    () => server.json<Groups>('/api/v1/groups'),
    {
      accept: (seen) => seen.groups.some((group) => group.class === 'business'),
    },
  )
  const group = groups.find((one) => one.class === 'business')?.id
  const body = { selection: { group }, ratePerSecond: 3, canary: [1], maxFailureRatio: 1 }
  const { id, hash } = await server.json<Run>('/api/v1/replays', body)
  return server.json<Run>(`/api/v1/replays/${id}/approve`, { hash })
}
