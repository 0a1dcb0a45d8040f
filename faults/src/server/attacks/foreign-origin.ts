import { randomUUID } from 'node:crypto'
import type { Scenario } from '../../harness/scenario.ts'
import { type Person, isOk, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { approve, outcome, plan, planned, type Run } from './runs.ts'
import type { Target } from './target.ts'

/**
 * A replay is published to the queue where the message failed. Only callers with permissions on
 * that source can plan, approve or stop it.
 */
export const ELSEWHERE: Scenario = attack(
  'elsewhere',
  'a replay is sent to another queue, or a replay of another source is planned, approved or stopped',
  async (scene) => {
    await chosen(scene)
    await ofOthers(scene)
    await runsOfOthers(scene)
    await forged(scene)
  },
)

/** Field names that other consoles use for the destination. */
const FIELDS = [
  'target',
  'to',
  'queue',
  'topic',
  'exchange',
  'routingKey',
  'source',
  'destination',
  'url',
  'headers',
  'origin',
  '__proto__',
]

async function chosen({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  const other = queues.of('billing')
  const selection = { ids: [id] }
  const edit = Buffer.from('{}').toString('base64')
  for (const field of FIELDS) {
    // Written as text, because an object cannot have a name of this list (`__proto__`).
    const extra = `"${field}":${JSON.stringify(field === 'headers' ? { x: other } : other)}`
    const within = (value: object) => JSON.stringify(value).replace(/\}$/, `,${extra}}`)
    const bodies = {
      plan: within({ selection }),
      selection: `{"selection":${within(selection)}}`,
      query: `{"selection":{"query":${within({ after: 0 })}}}`,
      patch: `{"selection":${JSON.stringify(selection)},"change":${within({ patch: [{ op: 'remove', path: '/order' }] })}}`,
      operation: `{"selection":${JSON.stringify(selection)},"change":{"patch":[${within({ op: 'remove', path: '/order' })}]}}`,
      edit: `{"selection":${JSON.stringify(selection)},"change":${within({ edit })}}`,
    }
    for (const [where, text] of Object.entries(bodies)) {
      const response = await as.alice('POST', '/api/v1/replays', { text })
      tries.note(`a plan accepts '${field}' in its ${where}`, isOk(response))
    }
  }
}

async function ofOthers({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const [mine = ''] = await queues.kill(pool, 'orders', [{}])
  const [theirs = ''] = await queues.kill(pool, 'billing', [{}])
  const { group } = must<{ group: string }>(await as.root('GET', `/api/v1/dead-letters/${theirs}`))
  const selections = {
    ids: { ids: [theirs] },
    'ids of both': { ids: [mine, theirs] },
    'ids of both, theirs first': { ids: [theirs, mine] },
    group: { group },
    'a query of their source': { query: { after: 0, sources: ['billing'] } },
    'a query of both': { query: { after: 0, sources: ['orders', 'billing'] } },
    'a query of a pattern': { query: { after: 0, sources: ['*'] } },
    'a query of their group': { query: { groups: [group] } },
  }
  for (const [how, selection] of Object.entries(selections)) {
    const response = await plan(as.alice, { selection })
    tries.note(
      `alice plans a replay of billing with ${how}`,
      isOk(response) && (await has(as.root, response.json<Run>(), theirs)),
    )
  }
  const both = await plan(as.root, { selection: { ids: [mine, theirs] } })
  tries.note('one run has dead letters of two sources', isOk(both))
  for (const path of ['discard', 'restore', 'setOutcomes']) {
    const more = path === 'setOutcomes' ? { as: 'resolved' } : {}
    await as.alice('POST', `/api/v1/dead-letters/${path}`, { body: { ids: [theirs], ...more } })
    const response = await as.alice('POST', `/api/v1/dead-letters/${path}`, {
      body: { ids: [mine, theirs], ...more },
    })
    const { status } = must<{ status: string }>(
      await as.root('GET', `/api/v1/dead-letters/${theirs}`),
    )
    tries.note(`alice does ${path} in billing (${response.status})`, status !== 'open')
  }
}

async function has(root: Person, { id }: Run, deadLetter: string): Promise<boolean> {
  const { items } = must<{ items: readonly { deadLetter: string }[] }>(
    await root('GET', `/api/v1/replays/${id}/items`),
  )
  return items.some((item) => item.deadLetter === deadLetter)
}

async function runsOfOthers({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const [theirs = ''] = await queues.kill(pool, 'billing', [{}])
  const run = await planned(as.dave, { ids: [theirs] })
  for (const who of ['alice', 'bob', 'carol'] as const) {
    for (const path of ['', '/items', '/events']) {
      const response = await as[who]('GET', `/api/v1/replays/${run.id}${path}`)
      tries.note(`${who} sees a run of billing${path}`, isOk(response))
    }
    tries.note(`${who} approves a run of billing`, isOk(await approve(as[who], run)))
    for (const path of ['pause', 'resume', 'cancel']) {
      const response = await as[who]('POST', `/api/v1/replays/${run.id}/${path}`)
      tries.note(`${who} does ${path} with a run of billing`, isOk(response))
    }
  }
  must(await as.dave('POST', `/api/v1/replays/${run.id}/cancel`))
}

/** The message itself claims another origin. */
async function forged(scene: Scene): Promise<void> {
  const { target } = scene
  const other = target.queues.of('billing')
  await sends(scene, 'claims to be from another queue', { origin: other })
  const foreign = { 'redrive-reason': undefined, 'redrive-source': undefined }
  const others = {
    'redrive-exchange and redrive-routing-key': {
      'redrive-exchange': '',
      'redrive-routing-key': other,
    },
    CC: { CC: [other] },
    BCC: { BCC: [other] },
    'redrive-aside': { 'redrive-aside': JSON.stringify({ headers: { CC: [other] } }) },
    'NServiceBus.FailedQ': { ...foreign, 'NServiceBus.FailedQ': other },
    'MT-Fault-InputAddress': {
      ...foreign,
      'MT-Fault-InputAddress': `rabbitmq://localhost/${other}`,
      'MT-Fault-Message': 'x',
    },
    'x-first-death-queue': {
      ...foreign,
      'x-first-death-queue': other,
      'x-death': [{ queue: other, reason: 'rejected', count: 1 }],
    },
  }
  for (const [how, headers] of Object.entries(others)) {
    await sends(scene, `has the header ${how}`, { headers })
  }
}

async function sends(
  { target, tries }: Scene,
  how: string,
  special: Parameters<Target['queues']['kill']>[2][number],
): Promise<void> {
  const { as, queues, pool } = target
  const id = randomUUID()
  const ids = await queues.kill(pool, 'orders', [{ ...special, id }])
  // The broker itself may have sent copies when the message was written. Only copies of the replay
  // count.
  await queues.empty(queues.of('billing'))
  const run = await planned(as.alice, { ids })
  must(await approve(as.bob, run))
  const [orders, billing] = [queues.of('orders'), queues.of('billing')]
  const { run: ended, arrived } = await outcome(target, run, orders, billing)
  tries.note(
    `a dead letter that ${how} is published there`,
    arrived.get(billing)?.includes(id) === true,
  )
  const isKeptBack = ended.state === 'paused' || ended.counts.skipped === 1
  const isSafe = arrived.get(orders)?.includes(id) === true || isKeptBack
  if (!isSafe)
    throw new Error(`${how}: it was published nowhere, and the run is ${JSON.stringify(ended)}`)
  if (ended.state === 'paused') await as.root('POST', `/api/v1/replays/${run.id}/cancel`)
}
