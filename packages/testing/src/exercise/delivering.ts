import assert from 'node:assert/strict'
import { type Delivery, FIRST_CYCLE, isRedriveError, SETTLE } from '@redrive/core'
import type { Transport } from '@redrive/runtime'
import {
  deadLetterOf,
  dropOf,
  failedCycle,
  giveBack,
  numbered,
  retryIn,
  text,
  unreachable,
} from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'

async function declaresCapabilities(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  assert.deepEqual(tap.transport.capabilities, stage.capabilities)
}

async function successSettles(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const handled = await stage.world.send(numbered(1))
  const settled = await tap.next()
  assert.equal(settled.id, handled)
  assert.deepEqual(settled.cycle, FIRST_CYCLE)
  assert.equal((await tap.put(settled, SETTLE)).place, 'settled')

  await stage.world.send(numbered(2))
  assert.equal((await tap.put(await tap.next(), dropOf(FIRST_CYCLE))).place, 'dropped')
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function retryIsNotEarly(stage: Stage): Promise<void> {
  const delayMs = stage.capabilities.delay.kind === 'none' ? 0 : 300
  const tap = await stage.tap()
  const id = await stage.world.send(numbered(1))
  const first = await tap.next()
  const cycle = failedCycle(1, stage.clock.now())
  const handedOffAt = stage.clock.now()
  assert.equal((await tap.put(first, retryIn(delayMs, cycle, handedOffAt))).place, 'retry')
  // Other traffic is no reason to deliver it early.
  const other = await stage.world.send(numbered(2))
  const two = [await tap.next(), await tap.next()]
  assert.deepEqual(new Set(two.map((delivery) => delivery.id)), new Set([id, other]))
  for (const delivery of two) await tap.put(delivery, SETTLE)
  const [retry] = two.filter((delivery) => delivery.id === id)
  assert.equal(retry?.cycle.attempts, 1)
  const waitedMs = tap.arrivedAt(retry) - handedOffAt
  // The delay is the broker's, by a clock that may run a hundredth faster than ours while it is corrected;
  // one millisecond is what two clocks that count whole ones may differ by.
  assert.ok(waitedMs >= delayMs * 0.99 - 1, `a retry in ${delayMs} ms came after ${waitedMs} ms`)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function enactTwice(stage: Stage): Promise<void> {
  const { world, clock } = stage
  const tap = await stage.tap()
  const cycle = failedCycle(1, clock.now())
  const twice = async (decision: Parameters<typeof tap.put>[1]) => {
    await world.send(numbered(1))
    const delivery = await tap.next()
    await tap.put(delivery, decision)
    const again = await tap.enact(delivery, decision)
    assert.notEqual(again.kind, 'unknown', `${decision.kind} again, after it was done`)
  }
  await twice(SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
  await twice(deadLetterOf(cycle))
  await stage.places({ backlog: 0, deadLetters: 1 })
  await twice(retryIn(0, cycle, clock.now()))
  const copy = await tap.next()
  assert.equal(copy.cycle.attempts, 1)
  await tap.put(copy, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 1 })
}

async function orderIsKeptOrDeclared(stage: Stage): Promise<void> {
  if (stage.capabilities.ordering === 'none') {
    await assert.rejects(
      stage.consume(() => undefined, { order: 'lane' }),
      (error) => isRedriveError(error, 'CAPABILITY_MISSING'),
    )
    return
  }
  await orderSurvivesReturn(stage)
  await orderSurvivesFailure(stage)
}

async function orderSurvivesReturn(stage: Stage): Promise<void> {
  const tap = await stage.tap({ limit: 1 })
  const ids = [await stage.world.send(numbered(1, 'a')), await stage.world.send(numbered(2, 'a'))]
  const first = await tap.next()
  assert.equal((await tap.put(first, giveBack(stage.clock.now()))).place, 'returned')
  const seen: string[] = []
  for (const _ of ids) {
    const delivery = await tap.next()
    seen.push(delivery.id)
    await tap.put(delivery, SETTLE)
  }
  assert.deepEqual([first.id, ...seen], [ids[0], ...ids], 'a returned message keeps its place')
  await tap.close()
}

const LANES = ['a', 'b', 'c']
const PER_LANE = 5

async function orderSurvivesFailure(stage: Stage): Promise<void> {
  const sent = new Map<string, string[]>(LANES.map((lane) => [lane, []]))
  for (let number = 0; number < PER_LANE; number++) {
    for (const lane of LANES) sent.get(lane)?.push(await stage.world.send(numbered(number, lane)))
  }
  const laneOf = new Map([...sent].flatMap(([lane, ids]) => ids.map((id) => [id, lane] as const)))
  const handled = new Map<string, string[]>(LANES.map((lane) => [lane, []]))
  const busy = new Set<string>()
  await stage.consume(
    async ({ id, body }, { attempt }) => {
      const lane = laneOf.get(id) ?? ''
      assert.ok(!busy.has(lane), `two messages of lane ${lane} at once`)
      busy.add(lane)
      await Promise.resolve()
      busy.delete(lane)
      const { number } = body as { number: number }
      if (number === 1 && attempt < 3) throw unreachable()
      handled.get(lane)?.push(id)
    },
    { order: 'lane' },
  )
  await stage.until('every message is handled', () =>
    [...handled.values()].every((ids) => ids.length >= PER_LANE),
  )
  assert.deepEqual(handled, sent, 'the order in which each lane was handled')
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function unreadableHeaders(stage: Stage): Promise<void> {
  const headers = {
    'redrive-version': '1',
    'redrive-attempt': 'many',
    'redrive-history': '[0,[1,',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  }
  const id = await stage.world.send({ ...numbered(1), headers })
  const seen: { attempt: number; failures: number; traceparent: unknown }[] = []
  await stage.consume((message, { attempt, history }) => {
    seen.push({ attempt, failures: history.length, traceparent: message.headers['traceparent'] })
  })
  await stage.until('it is handled', () => seen.length > 0)
  const traceparent = String(seen[0]?.traceparent)
  assert.deepEqual(
    { ...seen[0], traceparent },
    { attempt: 1, failures: 0, traceparent: headers.traceparent },
  )
  const flags = stage.events.filter((event) => event.type === 'headers_unreadable')
  assert.equal(flags.length, 1, 'one flag is raised')
  assert.equal(flags[0]?.deliveryId, id)
  assert.ok((flags[0]?.problems.length ?? 0) > 0, 'it says what could not be read')
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function longDelay(stage: Stage): Promise<void> {
  const { delay } = stage.capabilities
  const backoffMs = 250
  const retry = {
    attempts: 2,
    inlineBelow: 0,
    floor: 1,
    backoff: { kind: 'fixed', delay: backoffMs },
  } as const
  if (delay.kind === 'none') {
    await assert.rejects(
      stage.consume(() => undefined, { retry }),
      (error) => isRedriveError(error, 'CAPABILITY_MISSING'),
    )
    return
  }
  const longestMs = 100
  const transport = claiming(stage.transport(), { kind: delay.kind, longestMs })
  const calls: { readonly at: number; readonly attempt: number }[] = []
  const handler = (_: unknown, { attempt }: { attempt: number }) => {
    calls.push({ at: stage.clock.now(), attempt })
    if (calls.length === 1) throw unreachable()
  }
  await stage.world.send({ bytes: text('{}') })
  await stage.consume(handler, { retry }, transport)
  await stage.until('the retry runs', () => calls.length > 1)
  await stage.places({ backlog: 0, deadLetters: 0 })
  assert.deepEqual(
    calls.map(({ attempt }) => attempt),
    [1, 2],
    'legs are not attempts',
  )
  const [first, second] = calls
  const waitedMs = (second?.at ?? 0) - (first?.at ?? 0)
  assert.ok(waitedMs >= backoffMs - 1, `a retry in ${backoffMs} ms ran after ${waitedMs} ms`)
  const legs = stage.enacted('retryAt').map(({ decision }) => decision)
  const longest = Math.max(...legs.map((leg) => (leg.kind === 'retryAt' ? leg.delayMs : 0)))
  assert.ok(longest <= longestMs, `a leg of ${longest} ms is longer than ${longestMs} ms`)
}

/** The same transport with a poorer delay. */
function claiming(transport: Transport, delay: Transport['capabilities']['delay']): Transport {
  return {
    source: transport.source,
    capabilities: { ...transport.capabilities, delay },
    open: (needs) => transport.open(needs),
    receive: (receiver) => transport.receive(receiver),
    enact: (delivery: Delivery, decision) => transport.enact(delivery, decision),
    limit: (count) => transport.limit(count),
    pause: () => transport.pause(),
    resume: () => transport.resume(),
    close: (options) => transport.close(options),
  }
}

export const DELIVERING: readonly Scenario[] = [
  {
    name: 'the declared capabilities are the exercised ones',
    play: declaresCapabilities,
    isBasic: true,
  },
  { name: 'success settles', play: successSettles, isBasic: true },
  { name: 'a retry arrives not before its time', play: retryIsNotEarly },
  { name: 'enacting twice has one effect', play: enactTwice },
  { name: 'order within a lane is kept, or its loss declared', play: orderIsKeptOrDeclared },
  { name: 'unreadable headers count as a first attempt and raise a flag', play: unreadableHeaders },
  { name: 'a delay beyond the longest is taken in legs, or refused at start', play: longDelay },
]
