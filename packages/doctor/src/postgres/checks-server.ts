import type { Check, CheckHit } from '../finding.ts'
import type { PostgresFacts } from './facts.ts'
import { settingIs } from './look.ts'

const MIN_VERSION = 13
const MIN_FREE_SHARE = 0.2
const RELOAD = 'select pg_reload_conf()'

/** Returns a function that finds a wrong setting of the server, and of each role or database that overrides it. */
function inAnyScope(
  name: string,
  isWrong: (value: string) => boolean,
): (facts: PostgresFacts) => readonly CheckHit[] {
  return ({ settings, overrides }) => {
    const value = settings[name]
    const own = overrides.filter((one) => one.name === name && isWrong(one.value))
    const hits = own.map((one) => ({ subject: `${name} of ${one.of}`, found: one.value }))
    // The value of the session may come from an override; then it is reported once.
    const isServerSetting =
      value !== undefined && isWrong(value) && own.every((one) => one.value !== value)
    return isServerSetting ? [{ subject: name, found: value }, ...hits] : hits
  }
}

const isOff = (value: string) => value === 'off' || value === 'false'
const isNone = (value: string) => value === '0' || value === '0ms'

/** Checks whether commits are durable. */
export const SERVER_CHECKS: readonly Check<PostgresFacts>[] = [
  {
    id: 'postgres.version',
    severity: 'advice',
    caps: 'A',
    looksFor: `PostgreSQL before ${MIN_VERSION}`,
    why: 'It gets no security fixes any more, and @redrive/postgres does not run on it.',
    fix: 'use a supported version',
    hits: ({ version }) =>
      version !== undefined && version < MIN_VERSION
        ? [{ subject: 'version', found: `PostgreSQL ${version}` }]
        : [],
  },
  {
    id: 'postgres.fsync',
    severity: 'loss',
    caps: 'C',
    looksFor: 'fsync off',
    why: 'After a crash of the machine, commits are missing, and the whole database may be unreadable.',
    fix: `alter system set fsync = on; ${RELOAD}`,
    hits: inAnyScope('fsync', isOff),
  },
  {
    id: 'postgres.full-page-writes',
    severity: 'loss',
    caps: 'C',
    looksFor: 'full_page_writes off',
    why: 'A page that was only partly written during a power failure cannot be repaired: rows are lost or wrong.',
    fix: `alter system set full_page_writes = on; ${RELOAD}`,
    hits: inAnyScope('full_page_writes', isOff),
  },
  {
    id: 'postgres.synchronous-commit',
    severity: 'loss',
    caps: 'C',
    looksFor: 'synchronous_commit off, for the server, this database or a role',
    why: 'The server acknowledges a commit before it is written: after a crash, the last commits are missing. Outbox rows are lost together with the change they report. Inbox rows are lost although their effects in other systems remain.',
    fix: `alter system set synchronous_commit = on; ${RELOAD}; for a role or database: alter role … / alter database … reset synchronous_commit`,
    hits: inAnyScope('synchronous_commit', isOff),
  },
  {
    id: 'postgres.no-synchronous-standby',
    severity: 'loss',
    caps: 'B',
    looksFor: 'no synchronous replica',
    why: 'When the server is lost or a replica takes over, commits that had not reached another machine are lost.',
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
    why: 'A synchronous replica is configured, but with local or remote_write the server acknowledges commits before the replica has stored them.',
    fix: `alter system set synchronous_commit = on; ${RELOAD}`,
    hits: (facts) =>
      facts.settings['synchronous_standby_names']
        ? inAnyScope(
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
    why: 'Commits wait for it without a limit: no event is handled and no dead letter is stored.',
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
    why: 'A replica accepts no writes. Its data may be behind, and commits may become visible in another order.',
    fix: 'use the address of the primary, or add target_session_attrs=read-write to the current address',
    hits: ({ isReplica, database }) =>
      isReplica ? [{ subject: `database ${database}`, found: 'in recovery' }] : [],
  },
  {
    id: 'postgres.checksums',
    severity: 'advice',
    caps: 'A',
    looksFor: 'data checksums off',
    why: 'A disk that returns other bytes than were written is detected late or never.',
    fix: 'stop the server, run pg_checksums --enable -D DATA, start it',
    hits: settingIs('data_checksums', 'off'),
  },
  {
    id: 'postgres.wal-level',
    severity: 'advice',
    caps: 'A',
    looksFor: 'wal_level minimal',
    why: 'Neither a replica nor a continuous backup is possible: when the disk is lost, everything since the last dump is lost.',
    fix: "alter system set wal_level = 'replica'; restart the server",
    hits: settingIs('wal_level', 'minimal'),
  },
  {
    id: 'postgres.no-copy',
    severity: 'advice',
    caps: 'A',
    looksFor: 'neither a replica nor an archive of the log',
    why: 'When the disk is lost, everything since the last dump is lost: dead letters, the outbox and the handled keys.',
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
    why: 'When no connection is free, consumers cannot claim or finish events, and an operator cannot connect.',
    fix: 'make the pools smaller, use a pooler, or raise max_connections',
    hits: ({ connections }) =>
      connections !== undefined && connections.used > connections.most * (1 - MIN_FREE_SHARE)
        ? [{ subject: 'max_connections', found: `${connections.used} of ${connections.most} used` }]
        : [],
  },
  {
    id: 'postgres.statement-timeout',
    severity: 'advice',
    caps: 'A',
    looksFor: 'no statement_timeout for this role or database',
    why: 'A statement that hangs keeps its connection and its locks forever.',
    fix: "alter role NAME set statement_timeout = '60s'",
    hits: ({ settings }) => unlimited(settings, 'statement_timeout'),
  },
  {
    id: 'postgres.idle-in-transaction-timeout',
    severity: 'delay',
    caps: 'A',
    looksFor: 'no idle_in_transaction_session_timeout for this role or database',
    why: 'A client that hangs in a transaction prevents vacuum from removing dead rows, and claims become slower and slower.',
    fix: "alter database {database:identifier} set idle_in_transaction_session_timeout = '5min'",
    hits: ({ settings, database }) =>
      unlimited(settings, 'idle_in_transaction_session_timeout', { database }),
  },
]

const unlimited = (
  settings: Readonly<Record<string, string>>,
  name: string,
  fill: Readonly<Record<string, string>> = {},
): readonly CheckHit[] =>
  settings[name] !== undefined && isNone(settings[name])
    ? [{ subject: name, found: '0', fill }]
    : []
