/** Alerts report their end, and channels have a limit of messages. */
export const ALERT_ENDS: string = String.raw`
alter table redrive_server.alert
  add column started_at timestamptz not null default now(),
  add column ended_at timestamptz,
  -- When the channel accepted the end. Null also when it never got the begin.
  add column resolved_at timestamptz,
  -- What the channel got when the alert began: the end repeats it, when its cause is not in the catalog any more.
  add column content jsonb;
comment on column redrive_server.alert.target is 'Hash of the address of the channel.';

create table redrive_server.alert_channel (
  target text collate "C" primary key,
  hour_started_at timestamptz not null,
  -- Messages with new alerts in this hour.
  messages integer not null
);
`
