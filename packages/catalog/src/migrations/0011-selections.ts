/** The tables of selections: fixed lists of dead letters to discard or restore. */
export const SELECTIONS: string = String.raw`
create table redrive_catalog.selection (
  id uuid primary key,
  action text collate "C" not null,
  -- Hash of the dead letters and their versions. A confirmation must contain it.
  hash text not null,
  asked jsonb not null,
  sources text[] not null,
  count integer not null,
  selected_by text not null,
  selected_at timestamptz not null default clock_timestamp(),
  constraint selection_action check (action in ('discard', 'restore'))
);
create table redrive_catalog.selection_item (
  selection_id uuid not null,
  dead_letter_id uuid not null,
  -- Version of the dead letter in the selection. Another version means that it has changed since.
  version integer not null,
  -- Null until the selection is applied. A repeated confirmation continues with these items.
  is_changed boolean,
  primary key (selection_id, dead_letter_id)
);
`
