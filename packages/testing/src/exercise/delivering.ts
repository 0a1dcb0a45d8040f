import assert from 'node:assert/strict'
import { FIRST_CYCLE, isRedriveError, SETTLE } from '@redrive/core'
import { isUnfinished } from '@redrive/runtime/internal'
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
import type { ScenarioContext } from './scenario-context.ts'
import { wrapTransport } from './wrap-transport.ts'

async function declaresCapabilities(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  assert.deepEqual(receiver.transport.capabilities, context.capabilities)
}

async function successSettles(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const handled = await context.world.send(numbered(1))
  const settled = await receiver.next()
  assert.equal(settled.id, handled)
  assert.deepEqual(settled.cycle, FIRST_CYCLE)
  assert.equal((await receiver.put(settled, SETTLE)).destination, 'settled')

  await context.world.send(numbered(2))
  assert.equal(
    (await receiver.put(await receiver.next(), dropOf(FIRST_CYCLE))).destination,
    'dropped',
  )
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function retryIsNotEarly(context: ScenarioContext): Promise<void> {
  const delayMs = context.capabilities.delay.kind === 'none' ? 0 : 300
  const receiver = await context.receiver()
  const id = await context.world.send(numbered(1))
  const first = await receiver.next()
  const cycle = failedCycle(1, context.clock.now())
  const handedOffAt = context.clock.now()
  assert.equal(
    (await receiver.put(first, retryIn(delayMs, cycle, handedOffAt))).destination,
    'retry',
  )
  // Other traffic must not cause an early delivery.
  const other = await context.world.send(numbered(2))
  const two = [await receiver.next(), await receiver.next()]
  assert.deepEqual(new Set(two.map((delivery) => delivery.id)), new Set([id, other]))
  for (const delivery of two) await receiver.put(delivery, SETTLE)
  const [retry] = two.filter((delivery) => delivery.id === id)
  assert.equal(retry?.cycle.attempts, 1)
  const waitedMs = receiver.arrivedAt(retry) - handedOffAt
  // The broker measures the delay. Its clock may run 1 % faster than ours while it is corrected, and two
  // clocks with whole milliseconds may differ by one.
  assert.ok(waitedMs >= delayMs * 0.99 - 1, `a retry in ${delayMs} ms came after ${waitedMs} ms`)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function enactTwice(context: ScenarioContext): Promise<void> {
  const { world, clock } = context
  const receiver = await context.receiver()
  const cycle = failedCycle(1, clock.now())
  const twice = async (decision: Parameters<typeof receiver.put>[1]) => {
    await world.send(numbered(1))
    const delivery = await receiver.next()
    await receiver.put(delivery, decision)
    const again = await receiver.enact(delivery, decision)
    assert.ok(!isUnfinished(again), `${decision.kind} again, after it was done: ${again.kind}`)
  }
  await twice(SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
  await twice(deadLetterOf(cycle))
  await context.places({ backlog: 0, deadLetters: 1 })
  await twice(retryIn(0, cycle, clock.now()))
  const copy = await receiver.next()
  assert.equal(copy.cycle.attempts, 1)
  await receiver.put(copy, SETTLE)
  await context.places({ backlog: 0, deadLetters: 1 })
}

async function orderIsKeptOrDeclared(context: ScenarioContext): Promise<void> {
  if (context.capabilities.ordering === 'none') {
    await assert.rejects(
      context.consume(() => undefined, { order: 'lane' }),
      (error) => isRedriveError(error, 'CAPABILITY_MISSING'),
    )
    return
  }
  await orderSurvivesReturn(context)
  await orderSurvivesFailure(context)
}

async function orderSurvivesReturn(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver({ limit: 1 })
  const ids = [
    await context.world.send(numbered(1, 'a')),
    await context.world.send(numbered(2, 'a')),
  ]
  const first = await receiver.next()
  assert.equal((await receiver.put(first, giveBack(context.clock.now()))).destination, 'returned')
  const seen: string[] = []
  for (const _ of ids) {
    const delivery = await receiver.next()
    seen.push(delivery.id)
    await receiver.put(delivery, SETTLE)
  }
  assert.deepEqual([first.id, ...seen], [ids[0], ...ids], 'a returned message keeps its position')
  await receiver.close()
}

const LANES = ['a', 'b', 'c']
const PER_LANE = 5

async function orderSurvivesFailure(context: ScenarioContext): Promise<void> {
  const sent = new Map<string, string[]>(LANES.map((lane) => [lane, []]))
  for (let number = 0; number < PER_LANE; number++) {
    for (const lane of LANES) sent.get(lane)?.push(await context.world.send(numbered(number, lane)))
  }
  const laneOf = new Map([...sent].flatMap(([lane, ids]) => ids.map((id) => [id, lane] as const)))
  const handled = new Map<string, string[]>(LANES.map((lane) => [lane, []]))
  const busy = new Set<string>()
  await context.consume(
    async ({ id, body }, { attempt }) => {
      const lane = laneOf.get(id) ?? ''
      assert.ok(!busy.has(lane), `two concurrent messages of lane ${lane}`)
      busy.add(lane)
      await Promise.resolve()
      busy.delete(lane)
      const { number } = body as { number: number }
      if (number === 1 && attempt < 3) throw unreachable()
      handled.get(lane)?.push(id)
    },
    { order: 'lane' },
  )
  await context.until('every message is handled', () =>
    [...handled.values()].every((ids) => ids.length >= PER_LANE),
  )
  assert.deepEqual(handled, sent, 'the order in which each lane was handled')
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function unreadableHeaders(context: ScenarioContext): Promise<void> {
  const headers = {
    'redrive-version': '1',
    'redrive-attempt': 'many',
    'redrive-history': '[0,[1,',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  }
  const id = await context.world.send({ ...numbered(1), headers })
  const seen: { attempt: number; failures: number; traceparent: unknown }[] = []
  await context.consume((message, { attempt, history }) => {
    seen.push({ attempt, failures: history.length, traceparent: message.headers['traceparent'] })
  })
  await context.until('it is handled', () => seen.length > 0)
  const traceparent = String(seen[0]?.traceparent)
  assert.deepEqual(
    { ...seen[0], traceparent },
    { attempt: 1, failures: 0, traceparent: headers.traceparent },
  )
  const flags = context.events.filter((event) => event.type === 'headers_unreadable')
  assert.equal(flags.length, 1, 'one flag is raised')
  assert.equal(flags[0]?.deliveryId, id)
  assert.ok((flags[0]?.problems.length ?? 0) > 0, 'it lists the unreadable headers')
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function longDelay(context: ScenarioContext): Promise<void> {
  const { delay } = context.capabilities
  const backoffMs = 250
  const retry = {
    attempts: 2,
    maxInlineDelay: 0,
    minDelay: 1,
    backoff: { kind: 'fixed', delay: backoffMs },
  } as const
  if (delay.kind === 'none') {
    await assert.rejects(
      context.consume(() => undefined, { retry }),
      (error) => isRedriveError(error, 'CAPABILITY_MISSING'),
    )
    return
  }
  const longestMs = 100
  const made = context.transport()
  const capabilities = { ...made.capabilities, delay: { kind: delay.kind, longestMs } }
  const transport = wrapTransport(made, { capabilities })
  const calls: { readonly at: number; readonly attempt: number }[] = []
  const handler = (_: unknown, { attempt }: { attempt: number }) => {
    calls.push({ at: context.clock.now(), attempt })
    if (calls.length === 1) throw unreachable()
  }
  await context.world.send({ bytes: text('{}') })
  await context.consume(handler, { retry }, transport)
  await context.until('the retry runs', () => calls.length > 1)
  await context.places({ backlog: 0, deadLetters: 0 })
  assert.deepEqual(
    calls.map(({ attempt }) => attempt),
    [1, 2],
    'parts of a delay are not attempts',
  )
  const [first, second] = calls
  const waitedMs = (second?.at ?? 0) - (first?.at ?? 0)
  assert.ok(waitedMs >= backoffMs - 1, `a retry in ${backoffMs} ms ran after ${waitedMs} ms`)
  const legs = context.enacted('retryAt').map(({ decision }) => decision)
  const longest = Math.max(...legs.map((leg) => (leg.kind === 'retryAt' ? leg.delayMs : 0)))
  assert.ok(longest <= longestMs, `a part of ${longest} ms is longer than ${longestMs} ms`)
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
  { name: 'a delay beyond the longest is split, or rejected at start', play: longDelay },
]
