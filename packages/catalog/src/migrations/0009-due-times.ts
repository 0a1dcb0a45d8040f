/** The column for the schedule of a run. A worker claims only items that are due. */
export const DUE_TIMES: string = String.raw`
alter table redrive_catalog.replay_run add column due_at timestamptz, add column waiting_counts text;
comment on column redrive_catalog.replay_run.due_at is 'When its next item is due. If it is null, the item is due now.';
comment on column redrive_catalog.replay_run.waiting_counts is 'The counts of its items when it last had to wait for outcomes. While they are the same, it still waits.';
comment on column redrive_catalog.replay_run.claimed_at is 'When a worker last looked at it. All runs with due items get turns.';
`
