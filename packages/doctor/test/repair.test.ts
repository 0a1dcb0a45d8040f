import { describe, expect, it } from 'vitest'
import {
  findIn,
  KAFKA_CHECKS,
  POSTGRES_CHECKS,
  type PolicyFacts,
  type QueueFacts,
  RABBITMQ_CHECKS,
  type RabbitmqFacts,
} from '../src/index.ts'
import { DEAD_LETTERS, KAFKA, POSTGRES, queue, RABBITMQ, RETRY, SOURCE, topic } from './good.ts'

/** The commands of the fixes. The suite of RabbitMQ checks that a broker accepts them. */

const policy = (changed: Partial<PolicyFacts> = {}): PolicyFacts => ({
  name: 'all',
  pattern: '.*',
  applyTo: 'all',
  priority: 3,
  definition: { 'max-length': 5, 'dead-letter-exchange': 'orders.dlx' },
  ...changed,
})

/** A source without arguments, to which a policy applies. */
const policed = (...policies: readonly PolicyFacts[]): Partial<RabbitmqFacts> => {
  const [applied] = policies
  const source: QueueFacts = {
    ...queue('orders', {}),
    arguments: {},
    policy: applied?.definition ?? {},
    policyName: applied?.name,
  }
  return { queues: [source, DEAD_LETTERS, RETRY], policies }
}

const fixes = (changed: Partial<RabbitmqFacts>) =>
  Object.fromEntries(
    findIn(RABBITMQ_CHECKS, { ...RABBITMQ, ...changed }).map(({ check, fix }) => [check, fix]),
  )

describe('the fix of a setting', () => {
  it('contains all values of the policy and of the findings of the queue', () => {
    const own = policy({ name: 'mine', pattern: '^orders$', applyTo: 'quorum_queues' })
    const found = fixes(policed(own))
    const command = `rabbitmqctl set_policy --vhost / --priority 3 --apply-to quorum_queues mine '^orders$' '{"max-length":5,"dead-letter-exchange":"orders.dlx","delivery-limit":1000000,"dead-letter-strategy":"at-least-once","overflow":"reject-publish"}'`
    expect(found).toEqual({
      'rabbitmq.delivery-limit-missing': `set a high limit: ${command}`,
      'rabbitmq.dead-letter-strategy': `dead-letter at least once: ${command}`,
    })
  })

  it('is a policy with a higher priority than a shared one, with a note', () => {
    const { 'rabbitmq.dead-letter-strategy': fix } = fixes(policed(policy()))
    expect(fix).toContain(" --priority 4 --apply-to queues orders '^orders$' '{\"max-length\":5,")
    expect(fix).toContain('# a separate policy with a higher priority than all, which also applies')
  })

  it('does not use the name of another policy', () => {
    const other = policy({ name: 'orders', pattern: '^x$' })
    const { 'rabbitmq.dead-letter-strategy': fix } = fixes(policed(policy(), other))
    expect(fix).toContain(' --priority 4 --apply-to queues orders.redrive ')
  })

  it('creates the missing exchange, queue and binding', () => {
    const { 'rabbitmq.no-dead-letter-exchange': fix } = fixes({
      queues: [queue('orders', { 'delivery-limit': 1_000_000 })],
      sources: ['orders'],
      exchanges: [],
      bindings: [],
    })
    const [, json = '{}'] =
      /printf %s '(.*)' \| rabbitmqctl import_definitions && /.exec(fix ?? '') ?? []
    expect(JSON.parse(json)).toMatchObject({
      exchanges: [{ name: 'orders.dlx', type: 'direct', durable: true }],
      queues: [{ name: 'orders.dlq', arguments: { 'x-queue-type': 'quorum' } }],
      bindings: [{ source: 'orders.dlx', destination: 'orders.dlq', routing_key: 'orders' }],
    })
    expect(fix).toContain('"dead-letter-exchange":"orders.dlx","dead-letter-routing-key":"orders"')
  })

  it('declares the queue again when an argument wins over any policy', () => {
    const limited = { ...SOURCE, arguments: { ...SOURCE.arguments, 'delivery-limit': 5 } }
    expect(fixes({ queues: [limited, DEAD_LETTERS, RETRY] })).toEqual({
      'rabbitmq.delivery-limit-low':
        'raise it: move its messages, delete it and declare it again with x-delivery-limit: 1000000',
    })
  })

  it('changes the policy when the argument is right and the policy is wrong', () => {
    const mine = policy({ name: 'mine', pattern: '^orders$', definition: { 'delivery-limit': 5 } })
    const limited = { ...SOURCE, policy: mine.definition, policyName: 'mine' }
    const found = fixes({ queues: [limited, DEAD_LETTERS, RETRY], policies: [mine] })
    expect(found['rabbitmq.delivery-limit-low']).toContain(
      `mine '^orders$' '{"delivery-limit":1000000}'`,
    )
  })

  it('removes a setting, and clears a policy without other settings', () => {
    const expiring = (definition: PolicyFacts['definition'], pattern = '^orders$') =>
      fixes({
        queues: [{ ...SOURCE, policy: definition, policyName: 'mine' }, DEAD_LETTERS, RETRY],
        policies: [policy({ name: 'mine', pattern, definition })],
      })['rabbitmq.expires']
    expect(expiring({ expires: 1 })).toBe('remove expires: rabbitmqctl clear_policy --vhost / mine')
    expect(expiring({ expires: 1, 'max-length': 9 })).toContain(
      `mine '^orders$' '{"max-length":9}'`,
    )
    expect(expiring({ expires: 1 }, 'orders')).toContain(
      'in the policy mine, which also applies to other queues',
    )
  })

  it('sets no policy when the current one is unknown', () => {
    const { 'rabbitmq.dead-letter-strategy': fix } = fixes({
      ...policed(policy()),
      policies: undefined,
    })
    expect(fix).not.toContain('rabbitmqctl')
    expect(fix).toContain('could not be read')
  })

  it('reports when an operator policy must change', () => {
    const queues = [{ ...SOURCE, policy: { expires: 1 } }, DEAD_LETTERS, RETRY]
    expect(fixes({ queues })).toEqual({
      'rabbitmq.expires':
        'remove expires: an operator policy overrides this; change it to no expires',
    })
  })
})

describe('a name with special characters for a shell or SQL', () => {
  const HOSTILE = "x'; touch /tmp/pwned; '"
  const QUOTED = String.raw`'x'\''; touch /tmp/pwned; '\'''`

  it('stays a name in the commands of RabbitMQ', () => {
    const source: QueueFacts = { ...queue(HOSTILE, {}), arguments: {}, members: ['one'] }
    const found = findIn(RABBITMQ_CHECKS, {
      ...RABBITMQ,
      vhost: HOSTILE,
      queues: [{ ...source, online: ['one', 'two'], members: ['one', 'two', 'three', 'four'] }],
      sources: [HOSTILE],
    })
    expect(found.length).toBeGreaterThan(3)
    for (const { fix } of found) expect(wordsOf(fix)).not.toContain('touch')
    expect(found.find(({ check }) => check === 'rabbitmq.members-offline')?.fix).toContain(
      `--vhost ${QUOTED} ${QUOTED} NODE`,
    )
  })

  it('stays a name in the commands of Kafka', () => {
    const topics = [topic(HOSTILE, { 'retention.ms': '1' })]
    const sources = [{ topic: HOSTILE, group: 'billing', committed: 1 }]
    const [first] = findIn(KAFKA_CHECKS, { ...KAFKA, topics, sources })
    expect(first?.fix).toContain(`--entity-name ${QUOTED} --add-config`)
  })

  it('stays a name in SQL', () => {
    const found = findIn(POSTGRES_CHECKS, {
      ...POSTGRES,
      database: 'Shop"; drop table x; --',
      settings: { ...POSTGRES.settings, idle_in_transaction_session_timeout: '0' },
      prepared: [{ name: String.raw`a'; drop table x; --\ `, ageMs: 900_001 }],
      slots: [{ name: "b'c", isActive: false, keptBytes: 1 }],
      tables: [{ name: 'redrive.outbox; x', liveRows: 1, deadRows: 0, isVacuumed: false }],
    }).map(({ fix }) => fix)
    expect(found).toEqual(
      expect.arrayContaining([
        expect.stringContaining(String.raw`commit prepared E'a''; drop table x; --\\ ' or`),
        "select pg_drop_replication_slot('b''c'), if its consumer no longer exists",
        'alter table redrive."outbox; x" reset (autovacuum_enabled)',
        `alter database "Shop""; drop table x; --" set idle_in_transaction_session_timeout = '5min'`,
      ]),
    )
  })
})

/** Returns the words as a shell splits them; quoted text is not split. */
const wordsOf = (command: string) =>
  command
    .replaceAll(String.raw`'\''`, 'Q')
    .replace(/'[^']*'/g, 'Q')
    .split(/[\s;&|]+/)
