/** A failed delivery waits before the next attempt, and an alert that a channel rejects is given up. */
export const ALERT_FAILURES: string = String.raw`
alter table redrive_server.alert
  -- Failed deliveries since the last successful one.
  add column failures integer not null default 0,
  -- How often the channel rejected the content.
  add column rejections integer not null default 0;
`
