import { consume, onEvent } from '@redrive/runtime'
import { services, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { connect, type NodeConnectionOptions } from '@nats-io/transport-node'
import { afterEach, describe, expect, it } from 'vitest'
import { connectionOptions, nats, natsSource } from '../src/index.ts'
import { natsWorld, siteAt } from './world.ts'

const SERVICE = 'nats-secured'
const url = await urlOf(SERVICE)
afterEach(() => services('do', SERVICE, 'allow'))
const bytes = new TextEncoder().encode('{"number":1}')

/** Returns a function that connects. Counts its calls, and the tries of the client library to connect again. */
function counted(options: NodeConnectionOptions = {}) {
  let tries = 0
  let opened = 0
  const open = async () => {
    opened += 1
    const connection = await connect({ ...connectionOptions(url), ...options })
    void (async () => {
      for await (const { type } of connection.status()) if (type === 'reconnecting') tries += 1
    })()
    return connection
  }
  return { open, tries: () => tries, opened: () => opened }
}

/** Makes the server reject the password until the client has failed twice, and then accept it again. */
async function rejectTwice(tries: () => number): Promise<void> {
  await services('do', SERVICE, 'deny')
  await until('the client library has tried several times', () => tries() >= 3)
  await services('do', SERVICE, 'allow')
}

describe('a server that rejects the credentials for some time', () => {
  it('delivers messages to the same consumer afterwards', async () => {
    const site = await siteAt(url)
    const world = await natsWorld(site)
    const { open, tries, opened } = counted()
    const handled = new Set<string>()
    const { stream } = world
    const consumer = await consume(
      nats({ stream, consumer: 'billing', connect: open }),
      ({ id }) => void handled.add(id),
      { logger: 'off' },
    )
    await rejectTwice(tries)
    const id = await world.send({ bytes })
    await until('the message is handled', () => handled.has(id))
    expect(opened()).toBe(1)
    await consumer.stop()
    await world.close()
    await site.connection.close()
  }, 60_000)

  it('delivers messages on a new connection when the client library has given up', async () => {
    const site = await siteAt(url)
    const world = await natsWorld(site)
    const { open, opened } = counted({ reconnect: false })
    const handled: string[] = []
    const events: string[] = []
    const { stream } = world
    const stopListening = onEvent(({ type, source }) => {
      if (source === stream) events.push(type)
    })
    const first = await world.send({ bytes })
    const consumer = await consume(
      nats({ stream, consumer: 'billing', connect: open }),
      async ({ id }, { signal }) => {
        if (handled.push(id) === 1) await aborted(signal)
      },
      { logger: 'off' },
    )
    await until('the first message is handled', () => handled.length === 1)
    await services('do', SERVICE, 'deny')
    await until('the transport has tried again', () => opened() > 1)
    expect(events).toContain('connection_lost')
    await services('do', SERVICE, 'allow')
    const second = await world.send({ bytes })
    await until(
      'both messages are handled',
      () => new Set(handled).size === 2 && handled.length > 2,
    )
    expect(new Set(handled)).toEqual(new Set([first, second]))
    expect(events).toContain('connection_restored')
    stopListening()
    await consumer.stop()
    await world.close()
    await site.connection.close()
  }, 60_000)

  it('lets a control plane drain on a new connection', async () => {
    const site = await siteAt(url)
    const world = await natsWorld(site)
    const { open, opened } = counted({ reconnect: false })
    const { stream } = world
    const source = natsSource({ stream, consumer: 'billing', connect: open })
    expect(await source.depth()).toBe(0)
    await services('do', SERVICE, 'deny')
    const depth = () => source.depth().catch(() => undefined)
    await until('the server rejects the control plane', async () => (await depth()) === undefined)
    await services('do', SERVICE, 'allow')
    await until('the control plane reads again', async () => (await depth()) === 0)
    expect(opened()).toBeGreaterThan(1)
    await source.close()
    await world.close()
    await site.connection.close()
  }, 60_000)
})

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
