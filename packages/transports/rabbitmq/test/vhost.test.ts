import { randomUUID } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { consume } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { makeUser, managementOf, put, remove } from './management.ts'
import { onRig, type Rig } from './rig.ts'

const url = await urlOf('rabbitmq')

const startError = (rig: Rig, address: string): Promise<unknown> =>
  consume(rig.transport({ url: address }), () => undefined).catch((error: unknown) => error)

const refusal = (vhost: string) => ({
  code: 'UNREACHABLE',
  message: expect.stringMatching(
    new RegExp(
      `^RabbitMQ at amqp://127.0.0.1:\\d+ does not open the vhost "${vhost}".* add_vhost.*set_permissions`,
    ),
  ) as string,
})

describe.concurrent('an address with a vhost', () => {
  it(
    'is refused with the name of the vhost when it does not exist',
    onRig(url, async (rig) => {
      const name = `missing/${randomUUID()}`
      const error = await startError(rig, `${rig.url}/${encodeURIComponent(name)}`)
      expect(error).toMatchObject(refusal(name))
    }),
  )

  it(
    'is refused without the password when the user has no permissions in it',
    onRig(url, async (rig) => {
      const name = `vhost-${randomUUID()}`
      const management = await managementOf('rabbitmq')
      await put(management, `/vhosts/${name}`, {})
      rig.atEnd(() => remove(management, `/vhosts/${name}`))
      const { address } = await makeUser(rig)
      const error = await startError(rig, `${address}/${name}`)
      expect(error).toMatchObject(refusal(name))
      expect(String(error)).not.toContain('secret')
    }),
  )

  it(
    'connects when the user has permissions in it',
    onRig(url, async (rig) => {
      const name = `vhost-${randomUUID()}`
      const management = await managementOf('rabbitmq')
      await put(management, `/vhosts/${name}`, {})
      rig.atEnd(() => remove(management, `/vhosts/${name}`))
      const { address } = await makeUser(rig, { vhost: name })
      const transport = rig.transport({ url: `${address}/${name}` })
      await expect(transport.open()).resolves.toBeUndefined()
      await transport.close()
    }),
  )
})
