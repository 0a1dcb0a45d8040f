import type { Scenario } from '../../harness/scenario.ts'
import { isOk } from './ask.ts'
import { attack } from './attack.ts'
import { staysLive } from './live.ts'

const FAILURES = 3_000
/** The limit of a source, and one group for everything above it. */
const GROUPS_MAX = 10_001
/** Batches that are stored at the same time count the groups at the same time, so each can use the room that is left. */
const AT_ONCE = 500
/** 5 s on a loaded machine: the list reads one page of an index. */
const LIST_MS = 5_000

/** A producer must not fill the catalog with groups by errors that never repeat. */
export const GROUPS: Scenario = attack(
  'groups',
  `${FAILURES} failures that are all different, in a source with almost as many groups as it may have`,
  async (scene) => {
    const { target, tries } = scene
    const { pool, queues, as } = target
    await queues.kill(pool, 'billing', [{}])
    await pool.query(FILL, ['billing', GROUPS_MAX - 100])
    await staysLive(scene, async () => {
      await queues.kill(
        pool,
        'billing',
        Array.from({ length: FAILURES }, () => ({})),
      )
      const answer = await as.root('GET', '/api/v1/groups?sources=billing&limit=100')
      tries.note(`the list of groups returns ${answer.status}`, !isOk(answer))
      tries.note(`the list of groups took ${Math.round(answer.ms)} ms`, answer.ms > LIST_MS)
    })
    const { rows } = await pool.query<{ count: number }>(COUNT, ['billing'])
    const count = rows[0]?.count ?? 0
    tries.note(`the source has ${count} groups`, count > GROUPS_MAX + AT_ONCE)
    await pool.query(EMPTY, ['billing'])
  },
)

/** Adds groups without dead letters until the source has this number. */
const FILL = `
insert into redrive_catalog.failure_group
    (id, source_id, signature, algorithm, class, title, sample, first_seen_at, last_seen_at)
  select gen_random_uuid(), s.id, 'filler-' || n, 1, 'unknown', 'filler', 'filler', now(), now()
    from redrive_catalog.source s cross join generate_series(1, $2 - (
      select count(*)::integer from redrive_catalog.failure_group g where g.source_id = s.id)) n
    where s.name = $1`

const COUNT = `
select count(*)::integer as count from redrive_catalog.failure_group g
  join redrive_catalog.source s on s.id = g.source_id where s.name = $1`

const EMPTY = `
delete from redrive_catalog.failure_group g using redrive_catalog.source s
  where s.id = g.source_id and s.name = $1 and g.signature like 'filler-%'`
