import assert from 'node:assert/strict'
import type { World } from './world.ts'

const DEAD_LETTERS = `
select id, key, reason, class, attempts, generation, last_error
  from redrive.outbox_dead_letter`
const REPLAY_ALL = `
select redrive.outbox_replay(id, generation + 1, 'demo') from redrive.outbox_dead_letter`
const HISTORY = `
select c -> 'number' as cycle, c ->> 'reason' as reason,
    c ->> 'replayedBy' as replayed_by, c ->> 'lastError' as error
  from redrive.outbox, jsonb_array_elements(failure_history) c`

export async function replay(world: World): Promise<void> {
  const { story, database, subscriber } = world
  /** Runs a statement, shows it and returns the first column. */
  const run = async (text: string) => {
    const rows = await database.rows(text)
    story.sql(text, rows)
    return rows.flatMap((row) => Object.values(row).slice(0, 1).map(String))
  }

  story.heading('4. An event that cannot succeed, and its replay with plain SQL')
  const orderId = await world.buy('mug', 'CHF')
  await world.service.waitForLog(/event=dead_letter/)
  story.say('Billing does not accept francs. This is a business rule, so no retry can help.')
  const [id] = await run(DEAD_LETTERS)
  const replayAs = (generation: number) =>
    `select redrive.outbox_replay('${id}', ${generation}, 'demo')`

  story.say(
    'An operator replays it too early. It fails again, and the same command again does nothing:',
  )
  assert.deepEqual(await run(REPLAY_ALL), ['replayed'])
  await world.service.waitForLog(/event=dead_letter/, 2)
  assert.deepEqual(await run(replayAs(1)), ['not_newer'])

  assert.equal(await world.service.stop(), 0)
  await world.deploy({ CURRENCIES: 'EUR,USD,CHF' })
  story.say('The fix is deployed, and the event is replayed again:')
  assert.deepEqual(await run(REPLAY_ALL), ['replayed'])
  assert.deepEqual(await run(replayAs(2)), ['not_failed'])
  await subscriber.waitForPaid([orderId])
  story.say(`${orderId} is charged. Its event keeps the history of its failures:`)
  assert.deepEqual(await run(HISTORY), ['1', '2'])
}
