import { type Duration, RedriveError } from '@redrive/core'
import { CAPABILITIES } from '@redrive/memory/internal'
import { publishEvent, type Transport } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { exerciseTransport } from '../src/index.ts'
import { memoryFixture } from '../src/memory-world.ts'
import { type BrokenWorld, brokenTransport } from './broken.ts'

/** Plays one scenario and returns the text of its failure. */
async function failureOf(
  scenario: string,
  open: () => BrokenWorld,
  deadline: Duration = '5s',
): Promise<string> {
  const tests = new Map<string, () => Promise<void>>()
  exerciseTransport({
    runner: { describe: (_, define) => define(), it: (name, test) => void tests.set(name, test) },
    name: 'under test',
    capabilities: CAPABILITIES,
    open,
    restartBroker: (world) => world.restart(),
    deadline,
  })
  const played = tests.get(scenario)
  if (played === undefined) throw new Error(`There is no scenario '${scenario}'`)
  try {
    await played()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error(`'${scenario}' passed`)
}

const never = () => new Promise<never>(() => undefined)

const scriptError = () =>
  new Error('WRONGTYPE Operation against a key holding the wrong kind of value')

/** A transport whose every read fails, as with a faulty script. */
function failsToRead({ source }: Transport): Partial<Transport> {
  return {
    receive: () => {
      const event = { type: 'connection_lost', at: 0, source, error: scriptError() } as const
      for (let time = 0; time < 3; time++) publishEvent(event)
    },
  }
}

const cannotStore = () =>
  new RedriveError('DLQ_FULL', 'The dead-letter stream is full.', {
    cause: Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }),
  })

describe('the failure of a scenario', () => {
  it('lists the events that the transport published', async () => {
    const text = await failureOf('success settles', () => brokenTransport(failsToRead))
    expect(text).toBe(
      'delivery number 1 arrives (waited 5000 ms). The transport reported: connection_lost: ' +
        'WRONGTYPE Operation against a key holding the wrong kind of value (3x); last enactment: none',
    )
  })

  it('is reported at the deadline when a check of the broker hangs, in real time', async () => {
    const text = await failureOf(
      'success settles',
      () => ({ ...memoryFixture(), backlog: never }),
      '2s',
    )
    expect(text).toMatch(/^messages are in the expected queues \(waited 2000 ms\)/)
  })

  it('names the call when the fixture does not open', async () => {
    const text = await failureOf(
      'success settles',
      () => never() as unknown as BrokenWorld,
      '500ms',
    )
    expect(text).toBe('open() of the world has not ended after 3500 ms.')
  })

  it('names the call that does not close, and closes the rest', async () => {
    let isClosed = false
    const text = await failureOf(
      'success settles',
      () => {
        const world = brokenTransport(() => ({ close: never }))
        const close = () => {
          isClosed = true
          return world.close()
        }
        return { ...world, close }
      },
      '500ms',
    )
    expect(text).toMatch(
      /^transport\.close\(\) resolves \(waited 500 ms\)\. The transport reported/,
    )
    expect(isClosed).toBe(true)
  })

  it('is reported before the runner times out when a call without a deadline hangs', async () => {
    const text = await failureOf(
      'success settles',
      () => ({ ...memoryFixture(), send: never }),
      '500ms',
    )
    expect(text).toMatch(/^The scenario has not ended after 3500 ms\..* last enactment: none/)
  })

  it('contains the causes of an unknown enactment', async () => {
    const text = await failureOf('enacting twice has one effect', () =>
      brokenTransport((transport) => ({
        enact: (delivery, decision) =>
          decision.kind === 'deadLetter'
            ? { kind: 'unknown', error: cannotStore() }
            : transport.enact(delivery, decision),
      })),
    )
    expect(text).toMatch(
      /^deadLetter is done, not unknown\. The transport reported: no event; last enactment: deadLetter -> unknown: DLQ_FULL: The dead-letter stream is full\. <- EPIPE: write EPIPE$/,
    )
  })

  it('contains the error of an enactment that throws', async () => {
    const text = await failureOf('success settles', () =>
      brokenTransport(() => ({
        enact: () => {
          throw scriptError()
        },
      })),
    )
    expect(text).toMatch(/^WRONGTYPE .*; last enactment: settle -> threw: WRONGTYPE/)
  })

  it('contains an error of the control plane during a wait', async () => {
    const text = await failureOf('success settles', () => ({
      ...brokenTransport(() => ({})),
      backlog: () => Promise.reject(scriptError()),
    }))
    expect(text).toMatch(/^messages cannot be counted: WRONGTYPE/)
  })
})
