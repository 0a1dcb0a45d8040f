import { randomUUID } from 'node:crypto'
import type { Scenario } from '../../harness/scenario.ts'
import { asking, isOk, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { newSignature } from './queues.ts'
import { approve, outcome, plan, planned, type Run } from './runs.ts'
import { bearer, newToken, type Target } from './target.ts'

/** Four eyes: the planner and the approver of a run are two people, and both refer to the same plan. */
export const APPROVAL: Scenario = attack(
  'approval',
  'a run is approved by its planner, by a program, too late, or for another plan',
  async (scene) => {
    await oneself(scene)
    await another(scene)
    await later(scene)
    await reuse(scene)
    await unseen(scene)
    await automatic(scene)
    await paused(scene)
  },
)

const one = async ({ queues, pool }: Target) => {
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  return id
}

/** Tries to approve one's own plan, with every kind of credential of one person. */
async function oneself({ target, tries }: Scene): Promise<void> {
  const { server, as } = target
  const { asking: session } = await target.visitor('carol')
  const secretOf = async (special: { readonly isAgent?: boolean; readonly name?: string }) => {
    const wanted = { actions: ['view', 'replay', 'approve'], sources: ['orders'] } as const
    return must<{ secret: string }>(await newToken(session, { ...wanted, ...special })).secret
  }
  const token = asking(server.url, bearer(await secretOf({ name: 'another name' })))
  const agent = asking(server.url, bearer(await secretOf({ isAgent: true })))
  const ways = { session, token, agent, 'the first token': as.carol }
  for (const [planner, plans] of Object.entries(ways)) {
    const run = await planned(plans, { ids: [await one(target)] })
    for (const [approver, approves] of Object.entries(ways)) {
      const response = await approve(approves, run)
      tries.note(`one person plans with ${planner} and approves with ${approver}`, isOk(response))
    }
    await as.root('POST', `/api/v1/replays/${run.id}/cancel`)
  }
}

async function another({ target, tries }: Scene): Promise<void> {
  const { server, as } = target
  const run = await planned(as.alice, { ids: [await one(target)] })
  const { asking: bob } = await target.visitor('bob')
  const wanted = { actions: ['view', 'approve'], sources: ['orders'], isAgent: true } as const
  const agent = bearer(must<{ secret: string }>(await newToken(bob, wanted)).secret)
  const response = await approve(asking(server.url, agent), run)
  tries.note("an approver's program approves", isOk(response))
  tries.note('approved by a person without the permission', isOk(await approve(as.alice, run)))
  tries.note('approved by an approver of another source', isOk(await approve(as.dave, run)))
  tries.note('approved without credentials', isOk(await approve(asking(server.url), run)))
}

/** Tries to approve a plan that is not the one the approver saw. */
async function later({ target, tries }: Scene): Promise<void> {
  const { as, pool, queues } = target
  const [first, second] = [await one(target), await one(target)]
  const small = await planned(as.alice, { ids: [first] })
  const large = await planned(as.alice, { ids: [first, second] })
  const response = await approve(as.bob, { id: large.id, hash: small.hash })
  tries.note('the hash of a smaller plan approves a larger one', isOk(response))
  const faster = must<Run>(
    await plan(as.alice, { selection: { ids: [first] }, canary: [], ratePerSecond: 10_000 }),
  )
  const fast = await approve(as.bob, { id: faster.id, hash: small.hash })
  tries.note('the hash of a slow plan approves a fast one', isOk(fast))
  const edited = must<Run>(
    await plan(as.alice, {
      selection: { ids: [first] },
      canary: [],
      change: { patch: [{ op: 'replace', path: '/order', value: 666 }] },
    }),
  )
  const changed = await approve(as.bob, { id: edited.id, hash: small.hash })
  tries.note('the hash of a plain plan approves one with a patch', isOk(changed))

  await pool.query(OLD, [small.id])
  tries.note('an expired plan is approved', isOk(await approve(as.bob, small)))
  await as.alice('POST', `/api/v1/replays/${large.id}/cancel`)
  tries.note('a cancelled plan is approved', isOk(await approve(as.bob, large)))

  await grown(target, tries)
  await discarded(target, tries)
  for (const { id } of [faster, edited]) await as.root('POST', `/api/v1/replays/${id}/cancel`)
  await outcome(target, small, queues.of('orders'))
}

const OLD = `update redrive_catalog.replay_run set planned_at = now() - interval '1 day' where id = $1`

/** The selection is a group that has grown since the plan. */
async function grown(target: Target, tries: Scene['tries']): Promise<void> {
  const { as, pool, queues } = target
  const signature = newSignature()
  const [seen = ''] = await queues.kill(pool, 'orders', [{ signature }])
  const { group } = must<{ group: string }>(await as.alice('GET', `/api/v1/dead-letters/${seen}`))
  const run = await planned(as.alice, { group })
  const unseen = randomUUID()
  await queues.kill(pool, 'orders', [{ signature, id: unseen }])
  must(await approve(as.bob, run))
  const { arrived } = await outcome(target, run, queues.of('orders'))
  const came = arrived.get(queues.of('orders')) ?? []
  tries.note(
    'a dead letter that joined the group after the plan is published',
    came.includes(unseen),
  )
  if (came.length === 0) throw new Error('No item of an approved run was published.')
}

/** One dead letter was discarded and restored since the plan, so it has a new version. */
async function discarded(target: Target, tries: Scene['tries']): Promise<void> {
  const { as, pool, queues } = target
  const [kept, gone] = [randomUUID(), randomUUID()]
  const ids = await queues.kill(pool, 'orders', [{ id: kept }, { id: gone }])
  const run = await planned(as.alice, { ids })
  must(await as.alice('POST', '/api/v1/dead-letters/discard', { body: { ids: [ids[1]] } }))
  must(await approve(as.bob, run))
  const { arrived } = await outcome(target, run, queues.of('orders'))
  const came = arrived.get(queues.of('orders')) ?? []
  tries.note('a dead letter that was discarded after the plan is published', came.includes(gone))
  if (!came.includes(kept))
    throw new Error('The dead letter that was not discarded was not published.')
  tries.note(
    'an approval is used again after the run was published',
    isOk(await approve(as.bob, run)),
  )
}

/** An approver without permission to unmask cannot see an edited body, so they cannot approve it. */
async function unseen({ target, tries }: Scene): Promise<void> {
  const { as } = target
  const id = await one(target)
  const seen = await as.alice('GET', `/api/v1/dead-letters/${id}`)
  const change = { edit: Buffer.from('{"order":666}').toString('base64') }
  const headers = { 'if-match': seen.headers.get('etag') ?? '' }
  const body = { selection: { ids: [id] }, change }
  const run = must<Run>(await as.alice('POST', '/api/v1/replays', { body, headers }))
  const shown = must<{ isHidden: boolean }>(await as.bob('GET', `/api/v1/replays/${run.id}/change`))
  if (!shown.isHidden) throw new Error('The approver sees the edit, so the attack proves nothing.')
  tries.note('an edit is approved by a person who cannot see it', isOk(await approve(as.bob, run)))
  await as.root('POST', `/api/v1/replays/${run.id}/cancel`)
}

/** Automatic replay approves all future runs, so it needs two people. */
async function automatic({ target, tries }: Scene): Promise<void> {
  const { as, pool, queues } = target
  // A source exists after its first ingest.
  await queues.kill(pool, 'billing', [{}])
  const path = '/api/v1/sources/billing/auto-replay'
  const { asking: session } = await target.visitor('root')
  for (const [how, asks] of [
    ['once', as.root],
    ['again', as.root],
    ['again in a session', session],
  ] as const) {
    const { state } = must<{ state: string }>(await asks('PUT', path, { body: { allowed: true } }))
    tries.note(`one administrator enables automatic replay, ${how}`, state === 'enabled')
  }
  for (const body of [{ quietFor: '1s' }, { ratePerSecond: 10_000 }]) {
    const response = await as.root('PUT', path, { body: { allowed: true, ...body } })
    tries.note(`automatic replay has ${JSON.stringify(body)}`, isOk(response))
  }
  must(await as.root('PUT', path, { body: { allowed: false } }))
}

/** A run that was paused for long needs a new approval. */
async function paused({ target, tries }: Scene): Promise<void> {
  const { as, pool } = target
  const selection = { ids: [await one(target), await one(target)] }
  const run = must<Run>(await plan(as.alice, { selection, ratePerSecond: 0.1 }))
  must(await approve(as.bob, run))
  must(await as.alice('POST', `/api/v1/replays/${run.id}/pause`))
  await pool.query(LONG_AGO, [run.id])
  const response = await as.alice('POST', `/api/v1/replays/${run.id}/resume`)
  tries.note('a run is resumed 30 days after its approval', isOk(response))
  await as.root('POST', `/api/v1/replays/${run.id}/cancel`)
}

const LONG_AGO = `update redrive_catalog.replay_run set planned_at = planned_at - interval '30 days',
  approved_at = approved_at - interval '30 days', paused_at = paused_at - interval '30 days' where id = $1`

/** Sends the key of another person's request. It must count as another request. */
async function reuse({ target, tries }: Scene): Promise<void> {
  const { as } = target
  const selection = { ids: [await one(target)] }
  const headers = { 'idempotency-key': randomUUID() }
  const run = must<Run>(await as.alice('POST', '/api/v1/replays', { body: { selection }, headers }))
  const again = await as.carol('POST', '/api/v1/replays', { body: { selection }, headers })
  const isSame = isOk(again) && again.json<Run>().plannedBy === run.plannedBy
  tries.note("another person's key returns their response", isSame)
  const seen = await as.dave('POST', '/api/v1/replays', { body: { selection }, headers })
  tries.note("another person's key shows a run of another source", isOk(seen))
  const other = await as.alice('POST', '/api/v1/replays', {
    body: { selection, ratePerSecond: 1 },
    headers,
  })
  tries.note('the same key is used for another plan', isOk(other))
  const key = { 'idempotency-key': randomUUID() }
  must(await approve(as.bob, run, key))
  tries.note(
    'the key of an approval approves for a person without the permission',
    isOk(await approve(as.alice, run, key)),
  )
  const second = await planned(as.alice, { ids: [await one(target)] })
  tries.note(
    'the key of an approval approves another run',
    isOk(await approve(as.bob, second, key)),
  )
  await outcome(target, run, target.queues.of('orders'))
}
