import { catalog } from '@redrive/catalog'
import { beforeEach, expect, test, vi } from 'vitest'
import { createAudit } from '../src/audit/audit.ts'
import type { Binding } from '../src/identity/grants.ts'
import { createIdentity } from '../src/identity/identity.ts'
import { createLog } from '../src/start/log.ts'
import { pauseEnded, startRunApprovals } from '../src/start/run-approvals.ts'
import { database, fill } from './http-stage.ts'
import { HTTPS, oidcOf } from './identity-stage.ts'

const pool = await database('redrive_server_run_approvals')
const ISSUER = 'https://idp.test'
const audit = createAudit({ pool })
const made = catalog({ pool })
const { replays } = made
const [PLANNER, APPROVER] = [`${ISSUER}#planner`, `${ISSUER}#approver`]
const CREW: Binding = { groups: ['crew'], roles: ['operator', 'approver'], sources: ['*'] }

let access: readonly Binding[] = [CREW]
const identity = createIdentity({
  pool,
  publicUrl: HTTPS,
  auth: { oidc: oidcOf(ISSUER) },
  access: () => access,
  audit: audit.write,
})
const signIn = (id: string, groups: readonly string[] = ['crew']) =>
  identity.login.oidc?.sessions.open({ id, name: id, groups })
const parts = { catalog: made, identity, audit, log: createLog({ level: 'silent' }) }

let run = ''
beforeEach(async () => {
  access = [CREW]
  for (const id of [PLANNER, APPROVER]) await signIn(id)
  const { ids } = await fill(made, 'orders')
  const planned = await replays.plan({ selection: { ids }, by: PLANNER })
  await replays.approve(planned.id, { hash: planned.hash, by: APPROVER })
  run = planned.id
})

test('a running replay continues while its planner and approver have the permission', async () => {
  await pool.query(`update redrive_server.person set logged_in_at = now() - interval '3 days'`)
  await pauseEnded(parts)
  expect(await replays.run(run)).toMatchObject({ state: 'running' })
})

test.each([
  ['planner', PLANNER, 'planned this run no longer has permission "replay"'],
  ['approver', APPROVER, 'approved this run no longer has permission "approve"'],
])('a running replay is paused after its %s has left the group', async (_, person, reason) => {
  await signIn(person, ['viewers'])
  await pauseEnded(parts)
  const paused = await replays.run(run)
  expect(paused).toMatchObject({
    state: 'paused',
    pauseReason: expect.stringContaining(reason) as unknown,
  })
  const { entries } = await audit.read({ subject: run, operation: 'pauseReplay' })
  expect(entries.map(({ outcome }) => outcome)).toEqual(['done', 'requested'])
})

test('a running replay is paused after its role was removed from the config', async () => {
  access = [{ ...CREW, sources: ['billing'] }]
  const checks = startRunApprovals(parts)
  await vi.waitFor(async () => expect(await replays.run(run)).toMatchObject({ state: 'paused' }))
  await checks.stop()
})
