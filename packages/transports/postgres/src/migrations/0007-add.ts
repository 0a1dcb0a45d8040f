/** Adds events from SQL: triggers, functions, psql, and clients in other languages. */
export const ADD_FUNCTION: string = String.raw`
-- Adds a JSON event in the current transaction and returns its id. It runs with the rights of the caller.
create function redrive.outbox_add(
  of_queue text, body jsonb, type text default null, key text default null, lane text default null,
  headers jsonb default '{}', delay interval default '0'
) returns uuid
language sql
begin atomic
  insert into redrive.outbox (queue, type, key, lane, content_type, headers, payload, due_at)
    values (of_queue, outbox_add.type, outbox_add.key, nullif(outbox_add.lane, ''), 'application/json',
      outbox_add.headers, convert_to(body::text, 'UTF8'), clock_timestamp() + delay)
    returning id;
end;
comment on function redrive.outbox_add(text, jsonb, text, text, text, jsonb, interval) is 'Adds an event to the outbox. It is published if and only if the transaction commits.';
`
