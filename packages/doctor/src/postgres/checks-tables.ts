import { formatDuration } from '@redrive/core'
import type { Check } from '../finding.ts'
import type { PostgresFacts, SchemaName } from './facts.ts'
import { settingIs } from './look.ts'

/** The last migration of each schema; a test compares them. */
export const NEWEST: Readonly<Partial<Record<SchemaName, string>>> = {
  redrive: '0008-turn',
  redrive_catalog: '0019-set-aside-replays',
}

/** 1 billion of 2 billion transaction numbers: leaves time to act before the server stops. */
const MAX_TRANSACTION_AGE = 1_000_000_000
/** 10,000 dead rows, and more than live rows: a busy outbox has fewer between two vacuums. */
const MAX_DEAD_ROWS = 10_000
/** 1 GB: a replica that restarts is less far behind. */
const MAX_SLOT_BYTES = 1_073_741_824
/** 2 days: partitions are created a week ahead, so maintenance has failed for 5 days. */
const MIN_DAYS_AHEAD = 2

const MIGRATE =
  'redrive migrate, or for an outbox in another schema migrate(pool, { schema }); or ask an administrator to run the output of redrive migrate --print-sql or migrationSql()'

const ago = (ms: number) => formatDuration(Math.round(ms / 1_000) * 1_000 || 1)

/** Checks whether the tables stay fast, and keep rows for long enough. */
export const TABLE_CHECKS: readonly Check<PostgresFacts>[] = [
  {
    id: 'postgres.old-transaction',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a transaction that is open for more than 15 minutes',
    why: 'Dead rows since then cannot be removed: the outbox grows, and claims become slower and slower.',
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
    looksFor: 'a prepared transaction that is not ended',
    why: 'It holds its locks and keeps dead rows forever, even after a restart.',
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
    looksFor: 'an unused replication slot',
    why: 'It keeps the write-ahead log, and perhaps dead rows, until the disk is full; then the server stops.',
    fix: 'select pg_drop_replication_slot({subject:literal}), if its consumer no longer exists',
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
    why: 'The server keeps the write-ahead log for it: when the disk is full, the server stops.',
    fix: 'find out why its consumer is slow; limit the slot: alter system set max_slot_wal_keep_size',
    hits: ({ slots }) =>
      slots
        .filter(({ isActive, keptBytes }) => isActive && keptBytes > MAX_SLOT_BYTES)
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
    why: 'At two billion, the server accepts no writes until it is vacuumed manually.',
    fix: 'find what blocks vacuum (old transactions, slots), then: vacuum (freeze, verbose)',
    hits: ({ transactionAge, database }) =>
      transactionAge !== undefined && transactionAge > MAX_TRANSACTION_AGE
        ? [{ subject: `database ${database}`, found: `${transactionAge} transactions old` }]
        : [],
  },
  {
    id: 'postgres.autovacuum',
    severity: 'delay',
    caps: 'A',
    looksFor: 'autovacuum off',
    why: 'Dead rows are never removed: claims become slower and slower, and transaction numbers run out.',
    fix: 'alter system set autovacuum = on; select pg_reload_conf()',
    hits: settingIs('autovacuum', 'off'),
  },
  {
    id: 'postgres.table-autovacuum',
    severity: 'delay',
    caps: 'A',
    looksFor: 'autovacuum off for a table of Redrive',
    why: 'Dead rows of that table are never removed: queries on it become slower and slower.',
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
    why: 'Vacuum is too slow or cannot remove them: queries on the table become slower.',
    fix: 'find what blocks vacuum (old transactions, slots); then: vacuum (verbose) {subject:table}',
    hits: ({ tables }) =>
      tables
        .filter(({ deadRows, liveRows }) => deadRows > MAX_DEAD_ROWS && deadRows > liveRows)
        .map(({ name, deadRows, liveRows }) => ({
          subject: name,
          found: `${deadRows} dead rows, ${liveRows} live`,
        })),
  },
  {
    id: 'postgres.outbox-partitions',
    severity: 'advice',
    caps: 'A',
    looksFor: 'no partition of the outbox for the next days',
    why: 'Maintenance does not run: new events are stored in outbox_default, where they are deleted row by row instead of dropped with their day.',
    fix: 'select {function:table}(); when the role of the consumers is not the owner, also call maintain() from a job for each queue',
    hits: ({ partitionDaysAhead, outboxSchema }) =>
      partitionDaysAhead !== undefined && partitionDaysAhead < MIN_DAYS_AHEAD
        ? [
            {
              subject: `${outboxSchema}.outbox`,
              fill: { function: `${outboxSchema}.outbox_make_partitions` },
              found: `partitions for ${partitionDaysAhead} days from today on`,
            },
          ]
        : [],
  },
  {
    id: 'postgres.inbox-retention',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'an inbox with a shorter retention than dead letters',
    why: 'The inbox no longer has the key of an old dead letter: its replay takes effect a second time.',
    fix: "postgresInbox({ retention: '{wanted:text}' }), or a shorter retention of dead letters",
    hits: ({ expects, catalogRetentionMs = 0 }) => {
      const keptMs = Math.max(expects.deadLetterRetentionMs ?? 0, catalogRetentionMs)
      if (expects.inboxRetentionMs >= keptMs) return []
      const [has, wanted] = [formatDuration(expects.inboxRetentionMs), formatDuration(keptMs)]
      return [
        {
          subject: 'inbox',
          found: `inbox retention ${has}, dead-letter retention ${wanted}`,
          fill: { wanted },
        },
      ]
    },
  },
  {
    id: 'postgres.schema-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a missing schema of Redrive',
    why: 'Components that need it do not start.',
    fix: MIGRATE,
    hits: ({ schemas, expects }) =>
      schemas
        .filter(
          ({ schema, migrations }) => migrations === undefined && expects.schemas.includes(schema),
        )
        .map(({ name }) => ({ subject: name, found: 'does not exist' })),
  },
  {
    id: 'postgres.schema-old',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a schema of Redrive from an older release',
    why: 'Consumers and servers of this release do not start with it.',
    fix: MIGRATE,
    hits: ({ schemas }) =>
      schemas
        .filter(({ schema, migrations = [] }) => {
          const newest = NEWEST[schema]
          return migrations.length > 0 && newest !== undefined && !migrations.includes(newest)
        })
        .map(({ name, migrations = [] }) => ({
          subject: name,
          found: `at ${migrations.toSorted().at(-1) ?? 'nothing'}`,
        })),
  },
]
