/** The link from a group to the group of later rules that holds the same failures. */
export const CONTINUED_GROUPS: string = String.raw`
alter table redrive_catalog.failure_group
  add column continued_in uuid references redrive_catalog.failure_group on delete set null;
comment on column redrive_catalog.failure_group.continued_in is 'The group of later signature rules that holds the same failures.';
-- Few groups are linked: only those of earlier rules.
create index failure_group_continued on redrive_catalog.failure_group (continued_in) where continued_in is not null;
`
