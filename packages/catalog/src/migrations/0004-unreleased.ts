/** The table for messages without a stable id, which recognises them when the broker redelivers them. */
export const UNRELEASED: string = String.raw`
-- Dead letters without a stable id that are committed here, but may not be released in the broker yet. A redelivered
-- message is matched with a row of the same content and not added again.
create table redrive_catalog.unreleased (
  batch uuid not null,
  dead_letter_id uuid not null,
  content uuid not null,
  held_until timestamptz not null,
  primary key (batch, dead_letter_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index unreleased_content on redrive_catalog.unreleased (content);
comment on column redrive_catalog.unreleased.held_until is 'Until then the process that drained it may still release it, so no other process matches it.';
`
