import { reading, type Reader } from '../read/sql.ts'
import { ITEM_STATES, type ItemCounts } from '../replay/runs.ts'

/** What became of the items of all runs of a source, from the counts that runs keep. */
export interface SourceReplays {
  readonly source: string
  readonly items: ItemCounts
}

const REPLAYED = `
select s.name as source, jsonb_build_object(${ITEM_STATES.map((state) => `'${state}', coalesce(sum(r.${state}), 0)`).join(', ')}) as items
  from redrive_catalog.source s left join redrive_catalog.replay_run r on r.source_id = s.id
  group by s.name order by s.name`

export const readReplayed = (reader: Reader): Promise<readonly SourceReplays[]> =>
  reading(reader, (run) => run<SourceReplays>(REPLAYED))
