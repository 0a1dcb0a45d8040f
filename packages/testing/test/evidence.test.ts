import { type Duration, RedriveError } from '@redrive/core'
import { CAPABILITIES } from '@redrive/memory'
import { publishEvent, type Transport } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { exerciseTransport, memoryWorld } from '../src/index.ts'
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

/** A transport whose every read fails, as with a script that has a mistake. */
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

  it('comes at the deadline when a look at the broker hangs, in real time', async () => {
    const text = await failureOf(
      'success settles',
      () => ({ ...memoryWorld(), backlog: never }),
      '2s',
    )
    expect(text).toMatch(/^messages are where they belong \(waited 2000 ms\)/)
  })

  it('names the call when the world does not open', async () => {
    const text = await failureOf(
      'success settles',
      () => never() as unknown as BrokenWorld,
      '500ms',
    )
    expect(text).toBe('open() of the world has not ended after 3500 ms.')
  })

  it('names what does not close, and closes the rest', async () => {
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

  it('comes before the runner gives up when a call hangs that has no deadline', async () => {
    const text = await failureOf(
      'success settles',
      () => ({ ...memoryWorld(), send: never }),
      '500ms',
    )
    expect(text).toMatch(/^The scenario has not ended after 3500 ms\..* last enactment: none/)
  })

  it('gives the causes of an unknown enactment', async () => {
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

  it('names an enactment that throws', async () => {
    const text = await failureOf('success settles', () =>
      brokenTransport(() => ({
        enact: () => {
          throw scriptError()
        },
      })),
    )
    expect(text).toMatch(/^WRONGTYPE .*; last enactment: settle -> threw: WRONGTYPE/)
  })

  it('names an error of the control plane that a wait runs into', async () => {
    const text = await failureOf('success settles', () => ({
      ...brokenTransport(() => ({})),
      backlog: () => Promise.reject(scriptError()),
    }))
    expect(text).toMatch(/^the places of messages can be read: WRONGTYPE/)
  })
})
