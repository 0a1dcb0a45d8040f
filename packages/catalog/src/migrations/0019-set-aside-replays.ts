/** Links a set-aside message to the dead letter that it is a replay of. */
export const SET_ASIDE_REPLAYS = `
-- No foreign key: the dead letter may be deleted first, and it is in a partitioned table.
alter table redrive_catalog.set_aside add column replay_of uuid;
create index set_aside_replay_of on redrive_catalog.set_aside (replay_of) where replay_of is not null;
comment on column redrive_catalog.set_aside.replay_of is 'The dead letter that has the same content. Null: none, or its content was changed for the replay.';
`
