import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { diagnose } from '../src/index.ts'
import { deploy, rabbitmqWorld, type RabbitmqWorld } from './rabbitmq.world.ts'

/** The management API shows a new queue some seconds late. */
const SOON = { timeout: 60_000, interval: 1_000 }

let [shop, billing, unused] = [] as unknown as [RabbitmqWorld, RabbitmqWorld, RabbitmqWorld]

beforeAll(async () => {
  shop = await rabbitmqWorld('rabbitmq')
  billing = await rabbitmqWorld('rabbitmq')
  unused = await rabbitmqWorld('rabbitmq')
  await deploy(shop, { sourceOptions: { durable: false }, source: CLASSIC })
  await deploy(billing, { sourceOptions: { durable: false }, source: CLASSIC })
}, 240_000)

afterAll(async () => {
  for (const world of [shop, billing, unused]) await world.end()
})

/** A classic queue: other types cannot be transient. */
const CLASSIC = {
  'x-queue-type': 'classic',
  'x-overflow': undefined,
  'x-delivery-limit': undefined,
  'x-dead-letter-strategy': undefined,
}

const checked = async (vhost?: string) => {
  const { management } = shop
  const options = vhost === undefined ? { management } : { management, vhost }
  const { brokers } = await diagnose({ rabbitmq: options })
  return brokers.flatMap(({ findings }) => findings)
}

test('checks every vhost with queues if the options name none, and the broker once', async () => {
  const subjects = async () =>
    (await checked())
      .filter(({ check }) => check === 'rabbitmq.not-durable')
      .map(({ subject }) => subject)
  const ours = [`orders (vhost ${billing.vhost})`, `orders (vhost ${shop.vhost})`].toSorted()
  await expect.poll(subjects, SOON).toEqual(expect.arrayContaining(ours))
  const all = await checked()
  expect(all.filter(({ check }) => check === 'rabbitmq.one-node')).toHaveLength(1)
  expect(all.filter(({ subject }) => subject.includes(unused.vhost))).toEqual([])
  expect(all.find(({ subject }) => subject === ours[0])?.fix).toContain('durable: true')
})

test('reports that it did not check the other vhosts if they cannot be listed', async () => {
  const target = new URL(shop.management)
  const proxy = createServer((request, response) => {
    if (request.url?.startsWith('/api/vhosts') === true) {
      response.writeHead(503).end()
      return
    }
    const { method, headers } = request
    get({ host: target.hostname, port: target.port, path: request.url, method, headers }, (real) =>
      real.pipe(response.writeHead(real.statusCode ?? 500, real.headers)),
    )
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const management = new URL(shop.management)
  management.port = String((proxy.address() as AddressInfo).port)
  const { brokers } = await diagnose({ rabbitmq: { management: management.href } })
  proxy.close()
  expect(brokers.flatMap(({ findings }) => findings)).toContainEqual(
    expect.objectContaining({ check: 'rabbitmq.unreadable', subject: 'vhosts' }),
  )
})

test('checks only the vhost that the options name', async () => {
  const found = async () =>
    (await checked(billing.vhost)).filter(({ check }) => check === 'rabbitmq.not-durable')
  await expect
    .poll(async () => (await found()).map(({ subject }) => subject), SOON)
    .toEqual(['orders'])
})
