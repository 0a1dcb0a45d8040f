/** Adds events. One text parameter for any number of events: every driver can send it, and none changes it. */
export const ADD: string = `
insert into redrive.outbox (queue, type, lane, key, content_type, headers, payload, due_at)
select $1::text, e.type, nullif(e.lane, ''), e.key, e.content_type, coalesce(e.headers, '{}'),
  pg_catalog.decode(e.payload, 'base64'), pg_catalog.clock_timestamp() + coalesce(e.delay_ms, 0) * interval '1 millisecond'
from pg_catalog.jsonb_to_recordset($2::text::jsonb) as e (type text, lane text, key text, content_type text,
  headers jsonb, payload text, delay_ms double precision)
returning id`

/** Inserts events. An existing row is the same event, sent before. */
export const ADD_ONCE: string = `
insert into redrive.outbox (id, queue, type, lane, key, content_type, headers, payload)
select e.id, $1::text, e.type, nullif(e.lane, ''), e.key, e.content_type, coalesce(e.headers, '{}'),
  pg_catalog.decode(e.payload, 'base64')
from pg_catalog.jsonb_to_recordset($2::text::jsonb) as e (id uuid, type text, lane text, key text,
  content_type text, headers jsonb, payload text)
on conflict (id) do nothing`

export const NOTIFY: string = 'select pg_catalog.pg_notify($1, $2)'
