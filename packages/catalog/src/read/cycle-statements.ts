import { msSql } from './sql.ts'

/** 1,000 cycles: a dead letter is replayed a few times. */
export const EARLIER_CYCLES: string = `
select c.cycle, coalesce(g.root_id, c.group_id) as "group", c.replay_id as "replayId", ${msSql('c.first_failed_at')} as "firstFailedAt",
    ${msSql('c.last_failed_at')} as "lastFailedAt", c.attempts, c.reason, c.history,
    p.dead_letter_id is not null as "isEdited", p.preview
  from redrive_catalog.failure_cycle c left join redrive_catalog.failure_group g on g.id = c.group_id
    left join redrive_catalog.payload_before p on p.dead_letter_id = c.dead_letter_id and p.cycle = c.cycle and p.part = 0
  where c.dead_letter_id = $1::uuid order by c.cycle limit 1000`
