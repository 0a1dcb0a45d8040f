import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { urlsOf } from '@redrive/dev-support'
import { afterEach, beforeAll, expect, it } from 'vitest'
import {
  findIn,
  gradeOf,
  RABBITMQ_CHECKS,
  type RabbitmqOptions,
  readRabbitmq,
} from '../src/index.ts'
import {
  AS_CLASSIC,
  type Changes,
  deploy,
  type RabbitmqWorld,
  rabbitmqWorld,
} from './rabbitmq.world.ts'
import { idsIn } from './ids.ts'

interface Seed {
  /** The problem, as the end of the test name. */
  readonly name: string
  readonly expected: readonly string[]
  readonly changes?: Changes
  /** The management API shows it some 10 s after it is in force. */
  readonly policy?: readonly [pattern: string, definition: object]
  /** Additional set-up. */
  readonly seed?: (world: RabbitmqWorld) => Promise<void>
  readonly options?: Partial<RabbitmqOptions>
}

/** Returns the command of a fix, without its description. */
const commandIn = (fix: string) => fix.slice(fix.indexOf(': ') + 2)

/** Data of the management API may be some seconds old. */
const SOON = { timeout: 20_000 }

const SEEDS: readonly Seed[] = [
  {
    name: 'a classic source queue',
    expected: ['rabbitmq.classic-source'],
    changes: { source: AS_CLASSIC },
  },
  {
    name: 'a classic dead-letter queue',
    expected: ['rabbitmq.classic-dead-letter-queue'],
    changes: { deadLetters: AS_CLASSIC },
  },
  {
    // A quorum queue is always durable and never auto-delete: these two are classic.
    name: 'a dead-letter queue that is not durable',
    expected: ['rabbitmq.classic-dead-letter-queue', 'rabbitmq.not-durable'],
    changes: { deadLetters: AS_CLASSIC, deadLetterOptions: { durable: false } },
  },
  {
    name: 'a source queue that deletes itself',
    expected: ['rabbitmq.auto-delete', 'rabbitmq.classic-source'],
    changes: { source: AS_CLASSIC, sourceOptions: { autoDelete: true } },
  },
  {
    name: 'dead-lettering at most once',
    expected: ['rabbitmq.dead-letter-strategy'],
    changes: { source: { 'x-dead-letter-strategy': 'at-most-once' } },
  },
  {
    name: 'a retry queue that dead-letters at most once',
    expected: ['rabbitmq.dead-letter-strategy'],
    changes: { delay: { 'x-dead-letter-strategy': undefined } },
  },
  {
    name: 'at least once without reject-publish',
    expected: ['rabbitmq.dead-letter-overflow'],
    changes: { source: { 'x-overflow': undefined } },
  },
  {
    name: 'a source queue without a dead-letter exchange',
    expected: ['rabbitmq.no-dead-letter-exchange'],
    changes: {
      source: {
        'x-dead-letter-exchange': undefined,
        'x-dead-letter-routing-key': undefined,
        'x-dead-letter-strategy': undefined,
      },
    },
  },
  {
    name: 'a dead-letter exchange that is missing, at least once',
    expected: ['rabbitmq.dead-letters-stuck'],
    changes: { isWithoutExchange: true },
  },
  {
    name: 'a dead-letter exchange that nothing is bound to, at least once',
    expected: ['rabbitmq.dead-letters-stuck'],
    changes: { isUnbound: true },
  },
  {
    name: 'a dead-letter exchange that nothing is bound to, at most once',
    expected: ['rabbitmq.classic-source', 'rabbitmq.dead-letters-nowhere'],
    changes: { isUnbound: true, source: AS_CLASSIC },
  },
  {
    name: 'a binding for another key',
    expected: ['rabbitmq.dead-letters-stuck'],
    changes: { source: { 'x-dead-letter-routing-key': 'order' } },
  },
  {
    name: 'a dead-letter exchange that is gone after a restart',
    expected: ['rabbitmq.exchange-not-durable'],
    changes: { exchangeOptions: { durable: false } },
  },
  {
    name: 'a dead-letter queue that drops the oldest',
    expected: ['rabbitmq.drop-head'],
    changes: { deadLetters: { 'x-max-length': 10, 'x-overflow': 'drop-head' } },
  },
  {
    name: 'a dead-letter queue that can be full',
    expected: ['rabbitmq.dead-letter-queue-bounded'],
    changes: { deadLetters: { 'x-max-length-bytes': 1_000 } },
  },
  {
    name: 'a time to live of dead letters',
    expected: ['rabbitmq.dead-letter-ttl'],
    changes: { deadLetters: { 'x-message-ttl': 60_000 } },
  },
  {
    name: 'a time to live on the source queue',
    expected: ['rabbitmq.source-ttl'],
    changes: { source: { 'x-message-ttl': 60_000 } },
  },
  {
    name: 'a retry queue that expires',
    expected: ['rabbitmq.expires'],
    changes: { delay: { 'x-expires': 10_000 } },
  },
  {
    name: 'a low delivery limit',
    expected: ['rabbitmq.delivery-limit-low'],
    changes: { source: { 'x-delivery-limit': 5 } },
  },
  {
    name: 'a low delivery limit on the dead-letter queue, where it deletes',
    expected: ['rabbitmq.delivery-limit-drops'],
    changes: { deadLetters: { 'x-delivery-limit': 5 } },
  },
  {
    name: 'no delivery limit before 4.0',
    expected: ['rabbitmq.delivery-limit-missing'],
    changes: { source: { 'x-delivery-limit': undefined } },
  },
  {
    name: 'handlers that take longer than the broker waits',
    expected: ['rabbitmq.consumer-timeout'],
    options: { handlerTimeoutMs: 2_700_000 },
  },
  {
    name: 'a retry queue that leads to another queue',
    expected: ['rabbitmq.retry-elsewhere'],
    changes: { delay: { 'x-dead-letter-routing-key': 'orders.dlq' } },
  },
  {
    name: 'a retry queue that leads to a queue that is missing',
    expected: ['rabbitmq.dead-letters-stuck'],
    changes: { delay: { 'x-dead-letter-routing-key': 'elsewhere' } },
  },
  {
    name: 'a retry queue for all sources',
    expected: ['rabbitmq.retry-queue-shared'],
    changes: { delay: { 'x-dead-letter-routing-key': undefined } },
  },
  {
    name: 'a retry queue that leads to two queues',
    expected: ['rabbitmq.retry-queue-shared'],
    changes: { delay: { 'x-dead-letter-exchange': 'back', 'x-dead-letter-routing-key': 'any' } },
    seed: async ({ channel }) => {
      await channel.assertExchange('back', 'topic')
      await channel.bindQueue('orders', 'back', '#')
      await channel.bindQueue('orders.dlq', 'back', '*')
    },
  },
  {
    name: 'a retry queue that holds for another time than it says',
    expected: ['rabbitmq.retry-ttl'],
    changes: { delay: { 'x-message-ttl': 50_000 } },
  },
  {
    // Only classic queues have priorities on this broker.
    name: 'priorities',
    expected: ['rabbitmq.classic-source', 'rabbitmq.priority'],
    changes: { source: { ...AS_CLASSIC, 'x-max-priority': 5 } },
  },
  {
    name: 'a queue mode that does nothing',
    expected: ['rabbitmq.classic-source', 'rabbitmq.lazy'],
    changes: { source: { ...AS_CLASSIC, 'x-queue-mode': 'lazy' } },
  },
  {
    name: 'a policy that an argument overrides',
    expected: ['rabbitmq.policy-overridden'],
    policy: ['^orders$', { overflow: 'drop-head' }],
  },
  {
    name: 'a policy that lets a queue expire',
    expected: ['rabbitmq.expires'],
    policy: ['^orders\\.dlq$', { expires: 3_600_000 }],
  },
  {
    name: 'a policy whose smaller number counts',
    expected: ['rabbitmq.delivery-limit-low', 'rabbitmq.policy-overridden'],
    policy: ['^orders$', { 'delivery-limit': 7 }],
  },
  {
    name: 'a source queue that is not there',
    expected: ['rabbitmq.queue-missing'],
    options: { queues: ['orders', 'invoices'] },
  },
]

/** Tests each misconfiguration. `always` lists the findings of the broker itself. */
export function rabbitmqSuite(service: string, always: readonly string[]): void {
  const worlds: RabbitmqWorld[] = []
  const world = async () => {
    const made = await rabbitmqWorld(service)
    worlds.push(made)
    return made
  }

  beforeAll(async () => {
    await urlsOf(service)
  }, 240_000)

  afterEach(async () => {
    for (const made of worlds.splice(0)) await made.end()
  })

  const look = async (
    { management, vhost }: RabbitmqWorld,
    options: Partial<RabbitmqOptions> = {},
  ) => readRabbitmq({ management, vhost, ...options })

  it(`finds ${always.join() || 'nothing at all'} on what the transport declares`, async () => {
    const made = await world()
    await deploy(made)
    await expect.poll(async () => idsIn(RABBITMQ_CHECKS, await look(made)), SOON).toEqual(always)
  })

  it.each(SEEDS)('finds $name', async ({ expected, changes, policy, seed, options }) => {
    const made = await world()
    if (policy !== undefined) {
      const [pattern, definition] = policy
      const body = { pattern, definition, 'apply-to': 'queues' }
      await made.api('PUT', `policies/${made.vhost}/doctor`, body)
    }
    await deploy(made, changes)
    await seed?.(made)
    await expect
      .poll(async () => idsIn(RABBITMQ_CHECKS, await look(made, options)), SOON)
      .toEqual([...expected, ...always].sort())
  })

  it('finds nothing to look at in a vhost without queues, and gives no good grade for it', async () => {
    const made = await world()
    await made.channel.assertQueue('unrelated')
    const findings = findIn(RABBITMQ_CHECKS, await look(made))
    expect(findings.map(({ check }) => check)).toEqual(['rabbitmq.nothing-looked-at', ...always])
    expect(gradeOf(findings).grade).toBe('C')
  })

  it('prints fixes that all work, one after the other, and none of which undoes another', async () => {
    const made = await world()
    const { channel, api, vhost, shell } = made
    // A policy for several queues, which is common: it stays unchanged.
    const definition = { 'delivery-limit': 5, 'max-length': 1_000 }
    const body = {
      pattern: '^orders(\\.retried.*)?$',
      definition,
      'apply-to': 'queues',
      priority: 7,
    }
    await api('PUT', `policies/${vhost}/ord`, body)
    for (const name of ['orders', 'orders.retried.by.others']) {
      await channel.assertQueue(name, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
    }
    const queues = ['orders']
    const findings = () => look(made, { queues }).then((facts) => findIn(RABBITMQ_CHECKS, facts))
    const ids = async () => (await findings()).map(({ check }) => check).sort()
    const expected = ['rabbitmq.delivery-limit-drops', 'rabbitmq.no-dead-letter-exchange']
    await expect.poll(ids, SOON).toEqual([...expected, ...always].sort())
    for (const { fix } of (await findings()).filter(({ check }) => expected.includes(check))) {
      await shell(commandIn(fix))
    }
    await expect.poll(ids, SOON).toEqual(always)
    const { queues: after = [] } = await look(made)
    expect(after.find(({ name }) => name === 'orders')).toMatchObject({
      policyName: 'orders',
      policy: { 'max-length': 1_000, 'delivery-limit': 1_000_000 },
    })
    channel.sendToQueue('orders', Buffer.from('bad'))
    await expect
      .poll(async () => {
        const got = await channel.get('orders')
        if (got !== false) channel.nack(got, false, false)
        return (await channel.checkQueue('orders.dlq')).messageCount
      }, SOON)
      .toBe(1)
  }, 90_000)

  it('prints commands in which the name of a queue stays a name', async () => {
    const made = await world()
    const folder = await mkdtemp(`${tmpdir()}/redrive-doctor-`)
    const name = `x'; touch ${folder}/pwned; '`
    await made.channel.assertQueue(name, {
      durable: true,
      arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000 },
    })
    const queues = [name]
    const findings = () => look(made, { queues }).then((facts) => findIn(RABBITMQ_CHECKS, facts))
    const firstCheck = async () => (await findings())[0]?.check
    await expect.poll(firstCheck, SOON).toBe('rabbitmq.no-dead-letter-exchange')
    const [first] = await findings()
    await made.shell(commandIn(first?.fix ?? ''))
    await expect
      .poll(async () => (await findings()).map(({ check }) => check), SOON)
      .toEqual(always)
    expect(await readdir(folder)).toEqual([])
    await rm(folder, { recursive: true })
  })

  it('knows queues that others made by what they do', async () => {
    const { channel, ...made } = await world()
    await channel.assertExchange('dead', 'fanout')
    await channel.assertQueue('graveyard', { durable: true })
    await channel.bindQueue('graveyard', 'dead', '')
    await channel.assertQueue('work', { durable: true, deadLetterExchange: 'dead' })
    await channel.assertQueue('unrelated', { durable: false })
    const found = async () => {
      const findings = findIn(RABBITMQ_CHECKS, await look({ channel, ...made }))
      return findings.map(({ check, subject }) => `${check} ${subject}`)
    }
    await expect
      .poll(found, SOON)
      .toEqual([
        ...always.map((id) => `${id} cluster`),
        'rabbitmq.classic-source work',
        'rabbitmq.classic-dead-letter-queue graveyard',
      ])
  })

  it('checks only the listed queues and the queues that belong to them', async () => {
    const made = await world()
    await deploy(made)
    await made.channel.assertQueue('other', { durable: true, deadLetterExchange: 'nowhere' })
    const ids = async (options?: Partial<RabbitmqOptions>) =>
      idsIn(RABBITMQ_CHECKS, await look(made, options))
    await expect.poll(() => ids(), SOON).toContain('rabbitmq.dead-letters-nowhere')
    await expect.poll(() => ids({ queues: ['orders'] }), SOON).toEqual(always)
  })

  it('needs no more than the tag monitoring and a vhost it may enter', async () => {
    const made = await world()
    await deploy(made)
    const user = `doctor_${made.vhost}`
    await made.api('PUT', `users/${user}`, { password: 'secret', tags: 'monitoring' })
    await made.api('PUT', `permissions/${made.vhost}/${user}`, {
      configure: '^$',
      write: '^$',
      read: '^$',
    })
    try {
      const management = Object.assign(new URL(made.management), {
        username: user,
        password: 'secret',
      }).href
      const asUser = () => look({ ...made, management })
      await expect.poll(async () => idsIn(RABBITMQ_CHECKS, await asUser()), SOON).toEqual(always)
      const facts = await asUser()
      expect(facts.unreadable).toEqual([])
      expect(facts.queues).toHaveLength(4)
    } finally {
      await made.api('DELETE', `users/${user}`)
    }
  })

  it('reports what a user without the tag cannot read, and how to allow it', async () => {
    const made = await world()
    await deploy(made)
    const user = `doctor_${made.vhost}`
    await made.api('PUT', `users/${user}`, { password: 'secret', tags: '' })
    try {
      const management = Object.assign(new URL(made.management), {
        username: user,
        password: 'secret',
      }).href
      const [finding, ...more] = findIn(RABBITMQ_CHECKS, await look({ ...made, management }))
      expect(more).toEqual([])
      expect(finding).toMatchObject({ check: 'rabbitmq.unreadable', severity: 'loss', caps: 'C' })
      expect(finding?.found).toContain('401')
      expect(finding?.fix).toContain('rabbitmqctl set_user_tags USER monitoring')
      expect(JSON.stringify(finding)).not.toContain('secret')
    } finally {
      await made.api('DELETE', `users/${user}`)
    }
  })

  it('reads only the version by AMQP, and reports what it cannot read', async () => {
    const made = await world()
    // A cluster whose first node does not answer.
    const amqp = ['amqp://guest:guest@127.0.0.1:25799', made.amqp]
    const facts = await readRabbitmq({ amqp, vhost: made.vhost })
    expect(facts.version).toMatch(/^\d+\.\d+\.\d+$/)
    expect(findIn(RABBITMQ_CHECKS, facts)).toMatchObject([
      { check: 'rabbitmq.unreadable', subject: 'queues, policies and nodes', severity: 'loss' },
    ])
  })

  it('returns a finding instead of an error when no server answers', async () => {
    for (const address of [
      { management: 'http://guest:secret@127.0.0.1:25799' },
      { amqp: 'amqp://guest:secret@127.0.0.1:25799' },
    ]) {
      const findings = findIn(RABBITMQ_CHECKS, await readRabbitmq(address))
      expect(findings[0]).toMatchObject({ check: 'rabbitmq.unreadable', severity: 'loss' })
      expect(findings[0]?.found).toContain('ECONNREFUSED')
      expect(JSON.stringify(findings)).not.toContain('secret')
    }
  })
}
