/** The columns for everything that a dead letter states about its failures. Rows of older releases have nulls there. */
export const FAILURES: string = String.raw`
-- Parts of most signatures, so they are the same for all dead letters of a group; null where they are not. The frame is the first line of the
-- user's code in the stack trace; it is known only if the consumer keeps stack traces.
alter table redrive_catalog.failure_group add column error_type text, add column handler text, add column frame text;
comment on column redrive_catalog.failure_group.handler is 'The handler that failed. If it is null, the handler of the source applies.';
alter table redrive_catalog.dead_letter add column runs integer;
comment on column redrive_catalog.dead_letter.runs is 'Failed runs of the cycle, counted or not. If it is null, there were as many as attempts.';
comment on column redrive_catalog.dead_letter.history is 'The last failures of the cycle, oldest first.';
`
