import { formatDuration } from '@redrive/core'
import type { Check } from '../finding.ts'
import type { PostgresFacts, SchemaName } from './facts.ts'

/** The last migration of each schema; a test compares. */
export const NEWEST: Readonly<Partial<Record<SchemaName, string>>> = {
  redrive: '0004-retention',
  redrive_catalog: '0005-counts',
}

/** A billion, of the two that there are: time to act, before the server stops by itself. */
const OLD_AGE = 1_000_000_000
/** 10,000 dead rows, and more than live ones: a busy outbox has some between two vacuums. */
const MANY_DEAD = 10_000
/** A gigabyte: a replica that restarts is behind by less. */
const MUCH_LOG = 1_073_741_824
/** Two days: they are made a week ahead, so something has not worked for five. */
const DAYS_AHEAD = 2

const ago = (ms: number) => formatDuration(Math.round(ms / 1_000) * 1_000 || 1)

/** Whether the tables stay quick, and remember for long enough. */
export const TABLE_CHECKS: readonly Check<PostgresFacts>[] = [
  {
    id: 'postgres.old-transaction',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a transaction that is open for more than 15 minutes',
    why: 'Rows that died since then cannot be removed: the outbox grows, and claims get slower and slower.',
    fix: 'select pg_terminate_backend({pid}); then set idle_in_transaction_session_timeout',
    hits: ({ transactions, expects }) =>
      transactions
        .filter(({ ageMs }) => ageMs > expects.oldTransactionMs)
        .map(({ pid, who, state, ageMs }) => ({
          subject: `session ${pid} of ${who}`,
          found: `${state}, open for ${ago(ageMs)}`,
          fill: { pid },
        })),
  },
  {
    id: 'postgres.prepared-transaction',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a prepared transaction that nobody ends',
    why: 'It holds its locks and keeps dead rows for ever, across restarts too.',
    fix: 'commit prepared {subject:literal} or rollback prepared {subject:literal}, as its coordinator decided',
    hits: ({ prepared, expects }) =>
      prepared
        .filter(({ ageMs }) => ageMs > expects.oldTransactionMs)
        .map(({ name, ageMs }) => ({ subject: name, found: `prepared ${ago(ageMs)} ago` })),
  },
  {
    id: 'postgres.abandoned-slot',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a replication slot that nobody uses',
    why: 'It keeps the log, and perhaps dead rows, until the disk is full; then the server stops.',
    fix: 'select pg_drop_replication_slot({subject:literal}), when its consumer is gone for good',
    hits: ({ slots }) =>
      slots
        .filter(({ isActive }) => !isActive)
        .map(({ name, keptBytes }) => ({
          subject: name,
          found: `not active, keeps ${Math.round(keptBytes / 1_048_576)} MB of log`,
        })),
  },
  {
    id: 'postgres.lagging-slot',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a replication slot that is more than 1 GB behind',
    why: 'The log is kept for it: when the disk is full, the server stops.',
    fix: 'see why its consumer is slow; bound it: alter system set max_slot_wal_keep_size',
    hits: ({ slots }) =>
      slots
        .filter(({ isActive, keptBytes }) => isActive && keptBytes > MUCH_LOG)
        .map(({ name, keptBytes }) => ({
          subject: name,
          found: `keeps ${Math.round(keptBytes / 1_048_576)} MB of log`,
        })),
  },
  {
    id: 'postgres.wraparound',
    severity: 'delay',
    caps: 'A',
    looksFor: 'transaction numbers that run out',
    why: 'At two billion the server takes no writes any more until it was vacuumed by hand.',
    fix: 'find what holds vacuum back (old transactions, slots), then: vacuum (freeze, verbose)',
    hits: ({ transactionAge, database }) =>
      transactionAge !== undefined && transactionAge > OLD_AGE
        ? [{ subject: `database ${database}`, found: `${transactionAge} transactions old` }]
        : [],
  },
  {
    id: 'postgres.autovacuum',
    severity: 'delay',
    caps: 'A',
    looksFor: 'autovacuum off',
    why: 'Dead rows are never removed: claims get slower and slower, and transaction numbers run out.',
    fix: 'alter system set autovacuum = on; select pg_reload_conf()',
    hits: ({ settings }) =>
      settings['autovacuum'] === 'off' ? [{ subject: 'autovacuum', found: 'off' }] : [],
  },
  {
    id: 'postgres.table-autovacuum',
    severity: 'delay',
    caps: 'A',
    looksFor: 'autovacuum off for a table of Redrive',
    why: 'Dead rows of that table are never removed: what reads it gets slower and slower.',
    fix: 'alter table {subject:table} reset (autovacuum_enabled)',
    hits: ({ tables }) =>
      tables
        .filter(({ isVacuumed }) => !isVacuumed)
        .map(({ name }) => ({ subject: name, found: 'autovacuum_enabled=false' })),
  },
  {
    id: 'postgres.bloat',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a table of Redrive with more dead than live rows, and more than 10,000',
    why: 'Vacuum does not keep up or may not remove them: what reads the table gets slower.',
    fix: 'find what holds vacuum back (old transactions, slots); then: vacuum (verbose) {subject:table}',
    hits: ({ tables }) =>
      tables
        .filter(({ deadRows, liveRows }) => deadRows > MANY_DEAD && deadRows > liveRows)
        .map(({ name, deadRows, liveRows }) => ({
          subject: name,
          found: `${deadRows} dead rows, ${liveRows} live`,
        })),
  },
  {
    id: 'postgres.outbox-partitions',
    severity: 'advice',
    caps: 'A',
    looksFor: 'no partition of the outbox for the days to come',
    why: 'Maintenance does not run: new events go to outbox_default, where they are deleted row by row instead of dropped with their day.',
    fix: 'select redrive.outbox_make_partitions(); when the role of the consumers is not the owner, also call maintain() from a job for each queue',
    hits: ({ partitionDaysAhead }) =>
      partitionDaysAhead !== undefined && partitionDaysAhead < DAYS_AHEAD
        ? [
            {
              subject: 'redrive.outbox',
              found: `partitions for ${partitionDaysAhead} days from today on`,
            },
          ]
        : [],
  },
  {
    id: 'postgres.inbox-retention',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'an inbox that forgets before the last dead letter is gone',
    why: 'A replay of an old dead letter looks new: its effect happens a second time.',
    fix: "postgresInbox({ keep: '{wanted:text}' }), or a shorter retention of dead letters",
    hits: ({ expects, catalogRetentionMs = 0 }) => {
      const keptMs = Math.max(expects.deadLetterRetentionMs ?? 0, catalogRetentionMs)
      if (expects.inboxKeepMs >= keptMs) return []
      const [has, wanted] = [formatDuration(expects.inboxKeepMs), formatDuration(keptMs)]
      return [
        {
          subject: 'inbox',
          found: `remembers ${has}, dead letters are kept ${wanted}`,
          fill: { wanted },
        },
      ]
    },
  },
  {
    id: 'postgres.schema-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a schema of Redrive that should be there and is not',
    why: 'Nothing that needs it starts.',
    fix: 'redrive migrate; or let an administrator run what redrive migrate --print-sql prints',
    hits: ({ schemas, expects }) =>
      schemas
        .filter(
          ({ name, migrations }) => migrations === undefined && expects.schemas.includes(name),
        )
        .map(({ name }) => ({ subject: name, found: 'does not exist' })),
  },
  {
    id: 'postgres.schema-old',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a schema of Redrive from an older release',
    why: 'Consumers and servers of this release refuse to start on it.',
    fix: 'redrive migrate; or let an administrator run what redrive migrate --print-sql prints',
    hits: ({ schemas }) =>
      schemas
        .filter(({ name, migrations = [] }) => {
          const newest = NEWEST[name]
          return migrations.length > 0 && newest !== undefined && !migrations.includes(newest)
        })
        .map(({ name, migrations = [] }) => ({
          subject: name,
          found: `at ${migrations.toSorted().at(-1) ?? 'nothing'}`,
        })),
  },
]
