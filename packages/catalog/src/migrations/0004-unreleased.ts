/** What has no name in its broker, and how it is known again. */
export const UNRELEASED: string = String.raw`
-- Dead letters without a name that are committed here and not yet known to be released there. When their
-- broker hands one out again, it is matched with a row of the same content instead of added.
create table redrive_catalog.unreleased (
  batch uuid not null,
  dead_letter_id uuid not null,
  content uuid not null,
  held_until timestamptz not null,
  primary key (batch, dead_letter_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index unreleased_content on redrive_catalog.unreleased (content);
comment on column redrive_catalog.unreleased.held_until is 'Until then whoever drained it may still release it, so nobody else matches it.';
`
