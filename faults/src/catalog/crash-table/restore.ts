import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brokenIf } from '../../evidence/evidence.ts'
import { openDatabase } from '../../harness/effects.ts'
import { dropDatabase } from '../../postgres/database.ts'
import { until } from '../../harness/wait.ts'
import type { Stage } from '../stage.ts'
import { notDone, type Row } from './row.ts'

const run = promisify(execFile)
const COUNT = 20
/** 30 s for a step that takes milliseconds. */
const HANDED_OUT_MS = 30_000

/** Restores the catalog from a dump into a new database of the same name. */
async function restore(stage: Stage, dump: string): Promise<void> {
  const { catalogUrl, consumerUrl } = stage.where
  await dropDatabase(catalogUrl)
  const server = openDatabase(consumerUrl, { connections: 1 })
  await server.query(`create database "${new URL(catalogUrl).pathname.slice(1)}"`)
  await server.end()
  await run('pg_restore', ['--dbname', catalogUrl, dump])
  await stage.reopen()
}

const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'let through',
    (error: unknown) => String(error),
  )

/**
 * The dump is taken after the approval, so it contains the items. The first item is published after
 * the dump.
 */
const restored: Row = {
  name: 'c15-restored',
  story: 'the catalog is restored to a time before a replay that has taken effect',
  kind: 'rabbitmq',
  hasOwnCatalog: true,
  async play(stage) {
    const dump = join(stage.world.folder, 'catalog.dump')
    await stage.fill(COUNT)
    await stage.ingest()
    const { id } = await stage.started()
    await run('pg_dump', ['--format', 'custom', '--file', dump, stage.where.catalogUrl])
    await stage.crash('publish', { point: 'mark wanted', nth: 1 })
    const isFirstDone = await stage.finish(id)
    // The confirmations of the first copies end the run. The second copies may arrive later.
    const areHandedOut = () => stage.received() >= 2 * COUNT
    await until('all copies are delivered', areHandedOut, { withinMs: HANDED_OUT_MS })
    const before = stage.received()
    await restore(stage, dump)
    const { replays } = stage.catalog
    const turn = await stage.replayer.turn()
    const frozen = await replays.freezeReason()
    const plan = await replays.plan(await stage.request())
    const refusalText = await refusal(replays.approve(plan.id, { hash: plan.hash, by: 'bob' }))
    const during = stage.received() - before
    await replays.acknowledgeRestore({ by: 'bob' })
    const isSecondDone = await stage.finish(id)
    return {
      statuses: { resolved: COUNT },
      // Published twice before the restore, which the catalog does not contain, and once after it.
      duplicates: 2 * COUNT,
      unexplained: 2 * COUNT,
      figures: [frozen === undefined ? 'not frozen' : 'frozen until acknowledged'],
      broken: [
        ...notDone(isFirstDone && isSecondDone, 'the run'),
        ...brokenIf(
          [turn !== undefined || frozen === undefined, 'not fenced', 'replays were not frozen'],
          [during > 0, 'not fenced', `${during} were published without an approval`],
          [!refusalText.includes('frozen'), 'not fenced', `an approval was ${refusalText}`],
        ),
      ],
    }
  },
}

export const RESTORE: readonly Row[] = [restored]
