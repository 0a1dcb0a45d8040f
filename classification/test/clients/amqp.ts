/** RabbitMQ: a real server. */
import { type Channel, type ChannelModel, connect } from 'amqplib'
import { MISSING_HOST, PATIENCE_MS, type Provocations, type Site, WAIT_MS } from '../site.ts'

const QUEUE = 'redrive.classification'
const nothing = async () => undefined

async function withConnection(
  url: string,
  work: (connection: ChannelModel) => Promise<unknown> = nothing,
  timeout = PATIENCE_MS,
): Promise<unknown> {
  const connection = await connect(url, { timeout })
  connection.on('error', () => undefined)
  try {
    return await work(connection)
  } finally {
    await connection.close().catch(() => undefined)
  }
}

const serverOf = (site: Site) => site.url('rabbitmq', 'amqp')

const onChannel = (work: (channel: Channel) => Promise<unknown>) => async (site: Site) =>
  withConnection(await serverOf(site), async (connection) => {
    const channel = await connection.createChannel()
    channel.on('error', () => undefined)
    return work(channel)
  })

export const AMQP_CLIENTS: Provocations = {
  amqplib: {
    'closed port': async (site) => withConnection(`amqp://127.0.0.1:${await site.closedPort()}`),
    'host does not exist': () => withConnection(`amqp://${MISSING_HOST}`),
    'no response': async (site) =>
      withConnection(`amqp://127.0.0.1:${await site.silentPort()}`, nothing, WAIT_MS),
    'connection reset': async (site) =>
      withConnection(`amqp://127.0.0.1:${await site.resetPort()}`),
    'password rejected': async (site) => {
      const url = new URL(await serverOf(site))
      url.password = 'wrong'
      return withConnection(url.href)
    },
    'virtual host does not exist': async (site) => {
      const url = new URL(await serverOf(site))
      url.pathname = '/none'
      return withConnection(url.href)
    },
    'queue does not exist': onChannel((channel) => channel.checkQueue('redrive.none')),
    'queue has other arguments': onChannel(async (channel) => {
      await channel.assertQueue(QUEUE, { exclusive: true })
      return channel.assertQueue(QUEUE, { exclusive: true, maxLength: 7 })
    }),
    'queue is locked': async (site) =>
      withConnection(await serverOf(site), async (owner) => {
        const channel = await owner.createChannel()
        await channel.assertQueue(`${QUEUE}.locked`, { exclusive: true })
        return onChannel((other) => other.checkQueue(`${QUEUE}.locked`))(site)
      }),
    'name is reserved': onChannel((channel) => channel.assertQueue('amq.redrive')),
    'channel closed': onChannel(async (channel) => {
      await channel.close()
      return channel.checkQueue(QUEUE)
    }),
    'channel closed before a confirmation': async (site) =>
      withConnection(await serverOf(site), async (connection) => {
        const channel = await connection.createConfirmChannel()
        channel.on('error', () => undefined)
        channel.publish('redrive.none', '', Buffer.alloc(0))
        return channel.waitForConfirms()
      }),
    'connection closed': async (site) =>
      withConnection(await serverOf(site), async (connection) => {
        await connection.close()
        return connection.createChannel()
      }),
  },
}
