import type { Check, Hit } from '../finding.ts'
import type { PostgresFacts } from './facts.ts'

const SINCE = 13
const WANTED_FREE = 0.2
const RELOAD = 'select pg_reload_conf()'

/** The setting where it has that value: for the server, and for each role or database that has its own. */
function wherever(
  name: string,
  isWrong: (value: string) => boolean,
): (facts: PostgresFacts) => readonly Hit[] {
  return ({ settings, overrides }) => {
    const value = settings[name]
    const own = overrides.filter((one) => one.name === name && isWrong(one.value))
    const hits = own.map((one) => ({ subject: `${name} of ${one.of}`, found: one.value }))
    // What the session has may come from one of them; then it is said once.
    const isServers =
      value !== undefined && isWrong(value) && own.every((one) => one.value !== value)
    return isServers ? [{ subject: name, found: value }, ...hits] : hits
  }
}

const isOff = (value: string) => value === 'off' || value === 'false'
const isNone = (value: string) => value === '0' || value === '0ms'

/** Whether a commit is kept. */
export const SERVER_CHECKS: readonly Check<PostgresFacts>[] = [
  {
    id: 'postgres.version',
    severity: 'advice',
    caps: 'A',
    looksFor: `PostgreSQL before ${SINCE}`,
    why: 'It gets no security fixes any more, and @redrive/postgres does not run on it.',
    fix: 'use a supported version',
    hits: ({ version }) =>
      version !== undefined && version < SINCE
        ? [{ subject: 'version', found: `PostgreSQL ${version}` }]
        : [],
  },
  {
    id: 'postgres.fsync',
    severity: 'loss',
    caps: 'C',
    looksFor: 'fsync off',
    why: 'After a crash of the machine commits are missing, and the whole database may be unreadable.',
    fix: `alter system set fsync = on; ${RELOAD}`,
    hits: wherever('fsync', isOff),
  },
  {
    id: 'postgres.full-page-writes',
    severity: 'loss',
    caps: 'C',
    looksFor: 'full_page_writes off',
    why: 'A page that was half written in a power cut cannot be repaired: rows are lost or wrong.',
    fix: `alter system set full_page_writes = on; ${RELOAD}`,
    hits: wherever('full_page_writes', isOff),
  },
  {
    id: 'postgres.synchronous-commit',
    severity: 'loss',
    caps: 'C',
    looksFor: 'synchronous_commit off, for the server, this database or a role',
    why: 'The server answers before it has written: after a crash the last commits are missing, although they were acknowledged. Outbox rows vanish with the change they tell of, and inbox rows without their effect being undone elsewhere.',
    fix: `alter system set synchronous_commit = on; ${RELOAD}; for a role or database: alter role … / alter database … reset synchronous_commit`,
    hits: wherever('synchronous_commit', isOff),
  },
  {
    id: 'postgres.no-synchronous-standby',
    severity: 'loss',
    caps: 'B',
    looksFor: 'no replica that commits wait for',
    why: 'When the server is lost, or a replica takes over, the commits that had not reached another machine are gone.',
    fix: `alter system set synchronous_standby_names = 'ANY 1 (NAME, NAME)'; ${RELOAD}`,
    hits: ({ settings, isReplica }) =>
      settings['synchronous_standby_names'] === '' && !isReplica
        ? [{ subject: 'synchronous_standby_names', found: 'not set' }]
        : [],
  },
  {
    id: 'postgres.commit-not-on-standby',
    severity: 'loss',
    caps: 'B',
    looksFor: 'commits that do not wait until a replica has them on its disk',
    why: 'A synchronous replica is set up, and with local or remote_write commits are answered before it has stored them.',
    fix: `alter system set synchronous_commit = on; ${RELOAD}`,
    hits: (facts) =>
      facts.settings['synchronous_standby_names']
        ? wherever(
            'synchronous_commit',
            (value) => value === 'local' || value === 'remote_write',
          )(facts)
        : [],
  },
  {
    id: 'postgres.standby-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a synchronous replica that is not connected',
    why: 'Commits wait for it, without an end: nothing is handled and nothing is set aside.',
    fix: 'start the replica, or name another one in synchronous_standby_names',
    hits: ({ settings, standbys, isReplica }) =>
      settings['synchronous_standby_names'] &&
      !isReplica &&
      standbys?.every(({ sync }) => sync !== 'sync' && sync !== 'quorum')
        ? [
            {
              subject: 'synchronous_standby_names',
              found: `none of ${settings['synchronous_standby_names']} is connected`,
            },
          ]
        : [],
  },
  {
    id: 'postgres.replica',
    severity: 'delay',
    caps: 'A',
    looksFor: 'an address that leads to a replica',
    why: 'A replica takes no writes, and what it shows may be behind, in another order than it was committed.',
    fix: 'use the address of the primary, or add target_session_attrs=read-write to the one you have',
    hits: ({ isReplica, database }) =>
      isReplica ? [{ subject: `database ${database}`, found: 'in recovery' }] : [],
  },
  {
    id: 'postgres.checksums',
    severity: 'advice',
    caps: 'A',
    looksFor: 'data checksums off',
    why: 'A disk that returns other bytes than were written is noticed late or never.',
    fix: 'stop the server, run pg_checksums --enable -D DATA, start it',
    hits: ({ settings }) =>
      settings['data_checksums'] === 'off' ? [{ subject: 'data_checksums', found: 'off' }] : [],
  },
  {
    id: 'postgres.wal-level',
    severity: 'advice',
    caps: 'A',
    looksFor: 'wal_level minimal',
    why: 'Neither a replica nor a continuous backup is possible: everything since the last dump is lost with the disk.',
    fix: "alter system set wal_level = 'replica'; restart the server",
    hits: ({ settings }) =>
      settings['wal_level'] === 'minimal' ? [{ subject: 'wal_level', found: 'minimal' }] : [],
  },
  {
    id: 'postgres.no-copy',
    severity: 'advice',
    caps: 'A',
    looksFor: 'neither a replica nor an archive of the log',
    why: 'With the disk everything since the last dump is lost: dead letters, outbox, and the record of what was handled.',
    fix: 'set up a replica, or archive_mode with pgBackRest, WAL-G or Barman',
    hits: ({ settings, standbys, isReplica }) =>
      settings['archive_mode'] === 'off' && standbys?.length === 0 && !isReplica
        ? [{ subject: 'archive_mode', found: 'off, no replica' }]
        : [],
  },
  {
    id: 'postgres.connections',
    severity: 'delay',
    caps: 'A',
    looksFor: 'fewer than a fifth of the connections free',
    why: 'When none is left consumers cannot take or finish anything, and an operator cannot get in.',
    fix: 'make the pools smaller, use a pooler, or raise max_connections',
    hits: ({ connections }) =>
      connections !== undefined && connections.used > connections.most * (1 - WANTED_FREE)
        ? [{ subject: 'max_connections', found: `${connections.used} of ${connections.most} used` }]
        : [],
  },
  {
    id: 'postgres.statement-timeout',
    severity: 'advice',
    caps: 'A',
    looksFor: 'no statement_timeout for this role or database',
    why: 'A statement that hangs keeps its connection and its locks for ever.',
    fix: "alter role NAME set statement_timeout = '60s'",
    hits: ({ settings }) => unlimited(settings, 'statement_timeout'),
  },
  {
    id: 'postgres.idle-in-transaction-timeout',
    severity: 'delay',
    caps: 'A',
    looksFor: 'no idle_in_transaction_session_timeout for this role or database',
    why: 'A client that hangs in a transaction keeps all dead rows since then: vacuum stops, and claims get slower and slower.',
    fix: "alter database {database:identifier} set idle_in_transaction_session_timeout = '5min'",
    hits: ({ settings, database }) =>
      unlimited(settings, 'idle_in_transaction_session_timeout', { database }),
  },
]

const unlimited = (
  settings: Readonly<Record<string, string>>,
  name: string,
  fill: Readonly<Record<string, string>> = {},
): readonly Hit[] =>
  settings[name] !== undefined && isNone(settings[name])
    ? [{ subject: name, found: '0', fill }]
    : []
