/** Stores the name and the groups of a user at each login. */
export const STORE_PERSON: string = `
insert into redrive_server.person (id, name, groups) values ($1, $2, $3)
on conflict (id) do update set name = excluded.name, groups = excluded.groups, logged_in_at = now()`

/** The groups of a user are as old as the last login. */
const GROUPS_AGE =
  '(extract(epoch from now() - person.logged_in_at) * 1000)::float8 as groups_age_ms'

export interface PersonRow {
  readonly name: string
  readonly groups: readonly string[]
  readonly groups_age_ms: number
}

export const PERSON: string = `
select id, name, groups, ${GROUPS_AGE} from redrive_server.person where id = $1`

// ---- sessions -------------------------------------------------------------------------------

export const INSERT_SESSION: string = `
insert into redrive_server.session (secret_hash, id, person_id) values ($1, $2, $3)`

export const FIND_SESSION: string = `
select session.id, person.id as person_id, person.name, person.groups, ${GROUPS_AGE},
  seen_at < now() - $4 * interval '1 ms' as is_stale
from redrive_server.session join redrive_server.person on person.id = person_id
where secret_hash = $1
  and seen_at > now() - $2 * interval '1 ms' and created_at > now() - $3 * interval '1 ms'`

export const SESSION_SEEN: string = `
update redrive_server.session set seen_at = now() where id = $1`

export const DELETE_SESSION: string = `
delete from redrive_server.session where secret_hash = $1`

/** 1,000: more sessions than a team has. */
const SESSIONS_MAX = 1_000

export const OPEN_SESSIONS: string = `
select session.id, person.id as person_id, person.name, session.created_at, session.seen_at
from redrive_server.session join redrive_server.person on person.id = person_id
where seen_at > now() - $1 * interval '1 ms' and created_at > now() - $2 * interval '1 ms'
order by seen_at desc, session.id limit ${SESSIONS_MAX}`

export const REVOKE_SESSION: string = `
delete from redrive_server.session where id = $1 returning id`

export const DELETE_OLD_SESSIONS: string = `
delete from redrive_server.session where created_at < now() - $1 * interval '1 ms'`

// ---- logins ---------------------------------------------------------------------------------

export const INSERT_LOGIN: string = `
insert into redrive_server.login (secret_hash, state, nonce, verifier, return_to, expires_at)
values ($1, $2, $3, $4, $5, now() + $6 * interval '1 ms')`

/** Returns a login and deletes it. */
export const TAKE_LOGIN: string = `
delete from redrive_server.login where secret_hash = $1
returning state, nonce, verifier, return_to as "returnTo", expires_at < now() as "isOver"`

export const DELETE_OLD_LOGINS: string = `
delete from redrive_server.login where expires_at < now()`

// ---- tokens ---------------------------------------------------------------------------------

/** 1 min between two updates of `last_used_at`. */
const USED_EVERY_MS = 60_000

const SELECT_TOKEN = `
select token.*, person.name as person_name, person.groups, ${GROUPS_AGE},
  coalesce(last_used_at < now() - ${USED_EVERY_MS} * interval '1 ms', true) as is_stale
from redrive_server.token join redrive_server.person on person.id = person_id`

export const TOKEN: string = `${SELECT_TOKEN}
where token.id = $1`

export const VALID_TOKEN: string = `${SELECT_TOKEN}
where token.id = $1 and expires_at > now()`

/** 10,000: a hundred for each of a hundred users. */
const TOKENS_MAX = 10_000

/** Tokens of all users, the newest first. */
export const ALL_TOKENS: string = `${SELECT_TOKEN}
where expires_at > now()
order by created_at desc, token.id limit ${TOKENS_MAX}`

export const REVOKE_TOKEN: string = `
delete from redrive_server.token where id = $1 returning id`

export const TOKENS_OF_PERSON: string = `${SELECT_TOKEN}
where person_id = $1 and ($2::uuid is null or token.id = $2)
order by created_at desc, token.id`

/** Creates a token. It also creates the row of the owner, which is missing if the owner never logged in. */
export const INSERT_TOKEN: string = `
with owner as (
  insert into redrive_server.person (id, name, groups) values ($4, $5, '{}') on conflict (id) do nothing
)
insert into redrive_server.token (id, secret_hash, name, person_id, is_agent, actions, sources, expires_at)
values ($1, $2, $3, $4, $6, $7, $8, now() + $9 * interval '1 day')`

export const TOKEN_USED: string = `
update redrive_server.token set last_used_at = now() where id = $1`

export const DELETE_TOKEN: string = `
delete from redrive_server.token
where id = $1 and person_id = $2 and ($3::uuid is null or id = $3)
returning id`

export const DELETE_OLD_TOKENS: string = `
delete from redrive_server.token where person_id = $1 and expires_at < now()`

export const COUNT_TOKENS: string = `
select count(*) from redrive_server.token where person_id = $1`
