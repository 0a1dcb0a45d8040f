// Every series of `pnpm bench growth`, with the sizes of its subject and the bound of its exponent.
import type { Series, Subject } from './subject.ts'

/**
 * 1.1: the work is proportional to the size. The tenth allows for a factor of a logarithm (n log n is
 * 1.05 to 1.1 here) and for caches that become too small.
 */
const LINEAR = 1.1
/**
 * 0.5: the work does not depend on the size, except for an index that gets deeper. The part that grows
 * with a logarithm has an exponent of 0.1 to 0.4 over three decades, and a scan has 1.
 */
const LEVEL = 0.5
/** 0.1: four processes cost at most 1.15 times as much as one (4^0.1). */
const SPLIT = 0.1

// Loaded by subject, so that the clients of one are not in the memory of another.
// biome-ignore format: one row per subject, to be read as a table
const SUBJECTS = {
  consumers: { name: 'consumers', of: 'consumers in one process', sizes: [1, 2, 5, 10, 20, 50, 100], quickSizes: [1, 5, 20], rounds: 7, quickRounds: 3, open: async (o) => (await import('./consumers.ts')).openConsumers(o) },
  inFlight: { name: 'in-flight', of: 'messages in flight', sizes: [1, 10, 30, 100, 300, 1_000, 3_000, 10_000], quickSizes: [1, 10, 100, 1_000], rounds: 7, quickRounds: 3, open: async () => (await import('./in-flight.ts')).openInFlight() },
  sources: { name: 'sources', of: 'sources of the server', sizes: [1, 3, 10, 30, 100, 300, 1_000], quickSizes: [1, 10, 50], rounds: 1, quickRounds: 1, open: async (o) => (await import('./sources.ts')).openSources(o) },
  groups: { name: 'groups', of: 'groups', sizes: [1, 10, 100, 1_000, 3_000, 10_000, 30_000, 100_000], quickSizes: [1, 10, 100, 1_000], rounds: 1, quickRounds: 1, open: async (o) => (await import('./groups.ts')).openGroups(o) },
  newGroups: { name: 'new-groups', of: 'new groups of one source', sizes: [500, 1_000, 2_000, 4_000, 8_000], quickSizes: [500, 1_000, 2_000], rounds: 3, quickRounds: 3, open: async () => (await import('./new-groups.ts')).openNewGroups() },
  letters: { name: 'letters', of: 'dead letters', sizes: [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000], quickSizes: [10_000, 20_000, 50_000], rounds: 1, quickRounds: 1, open: async (o) => (await import('./letters.ts')).openLetters(o) },
  runs: { name: 'runs', of: 'replay runs at the same time', sizes: [1, 2, 5, 10, 20, 50], quickSizes: [1, 3, 10], rounds: 5, quickRounds: 3, open: async (o) => (await import('./runs.ts')).openRuns(o) },
  roles: { name: 'roles', of: 'processes of the server', sizes: [1, 4], quickSizes: [1, 4], rounds: 4, quickRounds: 3, open: async (o) => (await import('./roles.ts')).openRoles(o) },
} satisfies Record<string, Subject>

const { consumers, inFlight, sources, groups, newGroups, letters, runs, roles } = SUBJECTS

// biome-ignore format: one row per series, to be read as a table
export const SERIES: readonly Series[] = [
  { subject: consumers, name: 'start', unit: 'ms', bound: LINEAR, shows: 'time to start all consumers, one after the other' },
  { subject: consumers, name: 'memory', unit: 'KB', bound: LINEAR, shows: 'memory of all consumers, idle' },
  { subject: consumers, name: 'connections', unit: 'connections', bound: LINEAR, shows: 'connections that this process has opened' },
  { subject: consumers, name: 'broker-connections', unit: 'connections', bound: LINEAR, shows: 'connections that the broker reports' },
  { subject: consumers, name: 'message', unit: 'µs', bound: LEVEL, shows: 'processor time of a message when the consumers share one queue' },
  { subject: inFlight, name: 'memory', unit: 'KB', bound: LINEAR, shows: 'memory of all messages in flight, bodies of 1 KB' },
  { subject: sources, name: 'overview', unit: 'ms', bound: LINEAR, shows: 'GET /api/v1/overview, counts not cached' },
  { subject: sources, name: 'list', unit: 'ms', bound: LINEAR, shows: 'GET /api/v1/sources, counts not cached' },
  { subject: sources, name: 'poll', unit: 'ms', bound: LINEAR, shows: 'one poll of all sources, without dead letters' },
  { subject: sources, name: 'idle', unit: 'ms/s', bound: LINEAR, shows: 'processor time of a server with all roles in each second, without dead letters and requests' },
  { subject: sources, name: 'memory', unit: 'MB', bound: LINEAR, shows: 'resident memory of a server with all roles' },
  { subject: groups, name: 'ingest', unit: 'ms', bound: LEVEL, shows: 'ingest of 100 dead letters of existing groups' },
  { subject: groups, name: 'page', unit: 'ms', bound: LINEAR, shows: 'first page of groups: all groups are read and sorted' },
  { subject: groups, name: 'overview', unit: 'ms', bound: LINEAR, shows: 'counts of the overview' },
  { subject: newGroups, name: 'ingest', unit: 'ms', bound: LINEAR, shows: 'ingest of one dead letter of each group, with the statistics of the database from before' },
  { subject: letters, name: 'ingest', unit: 'ms', bound: LEVEL, shows: 'ingest of 100 dead letters' },
  { subject: letters, name: 'page', unit: 'ms', bound: LEVEL, shows: 'page of 50 of a random group' },
  { subject: letters, name: 'search', unit: 'ms', bound: LEVEL, shows: 'search by key' },
  { subject: letters, name: 'plan', unit: 'ms', bound: LEVEL, shows: 'plan of a replay of about 200 dead letters' },
  { subject: letters, name: 'count', unit: 'ms', bound: LEVEL, shows: 'counts of the overview' },
  { subject: runs, name: 'replay', unit: 'ms', bound: LEVEL, shows: 'time to publish the same total of items' },
  { subject: roles, name: 'ingest', unit: 'µs', bound: SPLIT, shows: 'time of one dead letter, ingested from a full queue' },
  { subject: roles, name: 'replay', unit: 'µs', bound: SPLIT, shows: 'time of one replayed dead letter' },
]
