import { urlOf } from '@redrive/dev-support'
import type { Enactment } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { adoptedPrefix, deadLetterExchange, deadLetterQueue } from '../src/index.ts'
import { makeUser, type User } from './management.ts'
import {
  closedByBroker,
  deadLetter,
  Inbox,
  type Line,
  lineOf,
  onRig,
  type Rig,
  until,
} from './rig.ts'

const url = await urlOf('rabbitmq')

/** Takes the permission to write. The broker caches it for a channel, so the connection is replaced as well. */
async function revokeWrite(mayWrite: User['mayWrite'], lines: readonly Line[]): Promise<void> {
  await mayWrite('^$')
  const old = lineOf(lines, 'publish')
  closedByBroker(old)
  await until('a new connection', () => lineOf(lines, 'publish') !== old)
}

const isNotConnected = (enactment: Enactment) =>
  enactment.kind === 'unknown' && String(enactment.error).includes('no connection')

describe.concurrent('a hand-off that the broker rejects', () => {
  it(
    'is refused with the words of the broker, and succeeds with the permission',
    onRig(url, async (rig) => {
      const { address, mayWrite } = await makeUser(rig)
      await rig.makeTopology()
      const { transport, inbox, lines } = await rig.start({ url: address, topology: 'verify' })
      await rig.send('a')
      const delivery = await inbox.nth(1)
      await revokeWrite(mayWrite, lines)
      const enactment = await until('the broker has answered', async () => {
        const result = await transport.enact(delivery, deadLetter())
        return isNotConnected(result) ? false : result
      })
      expect(enactment).toMatchObject({
        kind: 'refused',
        isTooLarge: false,
        error: {
          code: 'REFUSED',
          message: expect.stringMatching(/access to exchange .* refused for user/) as string,
        },
      })
      await mayWrite('.*')
      await until('it is stored', async () => {
        return (await transport.enact(delivery, deadLetter())).kind === 'done'
      })
      expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
    }),
  )

  it(
    'is unknown, with the words of the broker, when several are in flight',
    onRig(url, async (rig) => {
      const { address, mayWrite } = await makeUser(rig)
      await rig.makeTopology()
      const { transport, inbox, lines } = await rig.start({ url: address, topology: 'verify' })
      await rig.send('a')
      await rig.send('b')
      await inbox.nth(2)
      await revokeWrite(mayWrite, lines)
      const enactments = await until('the broker has answered', async () => {
        const results = await Promise.all(
          inbox.deliveries.map(async (delivery) => transport.enact(delivery, deadLetter())),
        )
        return results.some(isNotConnected) ? false : results
      })
      for (const enactment of enactments) {
        expect(enactment).toMatchObject({
          kind: 'unknown',
          error: { message: expect.stringMatching(/refused for user/) as string },
        })
      }
    }),
  )
})

async function expectNothingDeclared(rig: Rig, topology: 'declare' | 'adopt'): Promise<void> {
  const prefix = topology === 'adopt' ? adoptedPrefix(rig.queue) : rig.queue
  expect(await rig.count(deadLetterQueue(prefix))).toBeUndefined()
  expect(await rig.count(rig.queue)).toBe(topology === 'adopt' ? 0 : undefined)
  const exchange = rig.onChannel((channel) => channel.checkExchange(deadLetterExchange(prefix)))
  await expect(exchange).rejects.toMatchObject({ code: 404 })
}

describe.concurrent('a consumer that cannot work', () => {
  it(
    'is refused when its user may not publish retries and dead letters',
    onRig(url, async (rig) => {
      const { address, mayWrite } = await makeUser(rig)
      await rig.makeTopology()
      await mayWrite('^$')
      const transport = rig.transport({ url: address, topology: 'verify' })
      await expect(transport.open()).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringMatching(
          /access to exchange .* refused for user.*permission to write/,
        ) as string,
      })
    }),
  )

  it.each(['declare', 'adopt'] as const)(
    "declares nothing without the permission to publish (topology: '%s')",
    (topology) =>
      onRig(url, async (rig) => {
        const { address, mayWrite } = await makeUser(rig)
        if (topology === 'adopt') await rig.makeQueue(rig.queue)
        await mayWrite('^$')
        const transport = rig.transport({ url: address, topology })
        await expect(transport.open()).rejects.toMatchObject({
          code: 'REFUSED',
          message: expect.stringContaining('permission to write') as string,
        })
        await expectNothingDeclared(rig, topology)
      })(),
  )

  it.each(['declare', 'adopt'] as const)(
    "declares nothing without the permission to read the queue (topology: '%s')",
    (topology) =>
      onRig(url, async (rig) => {
        const { address } = await makeUser(rig, { read: '^$' })
        if (topology === 'adopt') await rig.makeQueue(rig.queue)
        const transport = rig.transport({ url: address, topology })
        await expect(transport.open()).rejects.toMatchObject({
          code: 'REFUSED',
          message: expect.stringMatching(
            /read the queue .*refused for user.*permission to read/,
          ) as string,
        })
        await expectNothingDeclared(rig, topology)
      })(),
  )

  it(
    'is refused when another consumer has the queue exclusively',
    onRig(url, async (rig) => {
      const transport = rig.transport({ queueType: 'classic' })
      await transport.open()
      transport.limit(10)
      await rig.onChannel(async (channel) => {
        await channel.consume(rig.queue, () => undefined, { exclusive: true })
        await expect(transport.receive(new Inbox())).rejects.toMatchObject({
          code: 'REFUSED',
          message: expect.stringMatching(/in exclusive use.*Stop an exclusive consumer/) as string,
        })
      })
      await transport.close()
    }),
  )
})
