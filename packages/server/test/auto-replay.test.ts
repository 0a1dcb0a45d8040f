import { catalog } from '@redrive/catalog'
import { MemoryBroker, memorySource } from '@redrive/memory'
import { beforeEach, expect, test } from 'vitest'
import { createAudit } from '../src/audit/audit.ts'
import { createIdentity } from '../src/identity/identity.ts'
import type { Binding } from '../src/identity/grants.ts'
import { admitAutoReplay } from '../src/start/components.ts'
import { database, fill } from './http-stage.ts'
import { HTTPS, oidcOf } from './identity-stage.ts'

const pool = await database('redrive_server_auto_replay')
const ISSUER = 'https://idp.test'
const audit = createAudit({ pool })
const made = catalog({ pool })
const [ADA, EVE] = [`${ISSUER}#ada`, `${ISSUER}#eve`]
const ADMINS: Binding = { groups: ['admins'], roles: ['admin'], sources: ['*'] }

let access: readonly Binding[] = [ADMINS]
const identity = createIdentity({
  pool,
  publicUrl: HTTPS,
  auth: { oidc: oidcOf(ISSUER) },
  access: () => access,
  audit: audit.write,
})
const signIn = (id: string, groups: readonly string[] = ['admins']) =>
  identity.login.oidc?.sessions.open({ id, name: id, groups })

/** Two users enable automatic replays of a source, and one of its groups is due. */
beforeEach(async () => {
  access = [ADMINS]
  for (const id of [ADA, EVE]) await signIn(id)
  await fill(made, 'orders')
  await pool.query(`
    update redrive_catalog.dead_letter set class = 'transient';
    update redrive_catalog.failure_group set class = 'transient', last_seen_at = now() - interval '1 hour';
    update redrive_catalog.replay_run set state = 'cancelled'`)
  await made.replays.enableAutoReplay('orders', undefined)
  for (const by of [ADA, EVE]) await made.replays.enableAutoReplay('orders', { by })
})

/** Plans and starts the automatic replays that are due. Returns the states of new runs. */
async function turn(): Promise<readonly string[]> {
  const source = memorySource({ broker: new MemoryBroker(), queue: 'orders' })
  await made.replays.autoReplay([{ source }], admitAutoReplay({ audit, identity }))
  await source.close()
  const { runs } = await made.replays.runs({ source: 'orders', states: ['running'] })
  return runs.map(({ state }) => state)
}

test('automatic replays start while both users have their permissions', async () => {
  // Automatic replays must also run at weekends, when no administrator signs in.
  await pool.query(`update redrive_server.person set logged_in_at = now() - interval '3 days'`)
  expect(await turn()).toContain('running')
  const { entries } = await audit.read({ operation: 'autoReplay', limit: 1 })
  expect(entries).toMatchObject([{ facts: { requestedBy: ADA, approvedBy: EVE } }])
})

test.each([
  ['the user who requested them', ADA],
  ['the user who approved them', EVE],
])('automatic replays do not start after %s has lost the permission', async (_, person) => {
  await signIn(person, ['viewers'])
  await expect(turn()).rejects.toThrow(/no longer has permission/)
  const { runs } = await made.replays.runs({ source: 'orders', states: ['running'] })
  expect(runs).toEqual([])
})

test('automatic replays do not start after the role was removed from the config', async () => {
  access = [{ ...ADMINS, sources: ['billing'] }]
  await expect(turn()).rejects.toThrow(/no longer has permission/)
})
