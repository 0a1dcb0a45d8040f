import type { Output } from '@redrive/api'
import type { SourceStatus } from '@redrive/api/enums'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { age, number, relative } from '../text/format.ts'
import { type Printable, red } from '../text/painted.ts'
import type { Column } from '../text/table.ts'

export interface ListSourcesOptions extends CommonOptions {
  /** Shows all columns. Default: the columns that fit into 80 characters. */
  readonly wide?: boolean
}

/** Lists sources with their open dead letters. */
export async function listSources(io: Io, options: ListSourcesOptions): Promise<ExitCode> {
  const answer = await connect(io, options).call('listSources', {}, { signal: io.signal })
  const { sources } = answer
  const columns =
    options.wide === true
      ? [...shortColumns(io.now()), ...wideColumns(sources)]
      : shortColumns(io.now())
  print(io, options, {
    json: answer,
    lines: sources,
    human: (page) => {
      if (sources.length === 0) page.line`No sources are visible to you.`
      else page.table(columns, sources)
      for (const one of sources) {
        const notes = notesOf(one)
        const name = one.state.problem === undefined ? one.source : red(one.source)
        if (notes.length > 0) page.line`\n${name}: ${notes.join(' ')}`
      }
    },
  })
  const expiring = answer.sources.reduce((sum, one) => sum + one.expiring, 0)
  if (expiring > 0) {
    hint(
      io,
      options,
    )`${number(expiring)} open dead letters expire within 7 days. Replay or discard them, or raise openRetention in the config of the server.`
  }
  if (answer.sources.some(({ open }) => open > 0)) {
    hint(io, options)`List open failures: redrive groups list --open`
  }
  if (answer.sources.some(({ setAside }) => setAside > 0)) {
    hint(io, options)`List messages that could not be catalogued: redrive set-aside list`
  }
  return EXIT.ok
}

const STATUS: Readonly<Record<SourceStatus, Printable>> = {
  connected: 'connected',
  not_checked: red('not checked'),
  missing_queue: red('queue missing'),
  unreachable: red('unreachable'),
}

const statusText = (status: SourceStatus): Printable => STATUS[status]

const none = (count: number) => (count === 0 ? '' : number(count))

/** The columns that fit into 80 characters. */
const shortColumns = (now: number): readonly Column<Source>[] => [
  { title: 'SOURCE', of: ({ source }) => source, least: 10 },
  { title: 'STATE', of: ({ state }) => statusText(state.status) },
  { title: 'IN BROKER', of: ({ state }) => depthText(state), isNumber: true },
  { title: 'OPEN', of: ({ open }) => number(open), isNumber: true },
  { title: 'OLDEST', of: (one) => oldestText(now, one) ?? '', isNumber: true },
  { title: 'LAST INGEST', of: (one) => ingestText(now, one) },
]

/** The other columns. */
const wideColumns = (sources: readonly Source[]): readonly Column<Source>[] => [
  ...unsettled(sources),
  { title: 'TOTAL', of: ({ count }) => number(count), isNumber: true },
  { title: 'EXPIRING', of: ({ expiring }) => none(expiring), isNumber: true },
  { title: 'SET ASIDE', of: ({ setAside }) => none(setAside), isNumber: true },
  { title: 'OPEN BY CLASS', of: ({ openByClass }) => byClass(openByClass), least: 10 },
  { title: 'PERMISSIONS', of: ({ permissions }) => permissions.join(' '), least: 8 },
]

const depthText = ({ depth }: Source['state']) => (depth === undefined ? '?' : number(depth))

const oldestText = (now: number, { oldestAt }: Source) =>
  oldestAt === undefined ? undefined : age(now - oldestAt)

const ingestText = (now: number, { lastIngestedAt }: Source) =>
  lastIngestedAt === undefined ? 'never' : relative(now, lastIngestedAt)

/** Returns what a source needs from a person, as sentences. */
function notesOf({ state, replaying, undecided, expiring, setAside }: Source): readonly string[] {
  const counts = [
    [replaying, 'being replayed'],
    [undecided, 'undecided'],
    [expiring, 'expire within 7 days'],
    [setAside, 'set aside'],
  ] as const
  const parts = counts.filter(([count]) => count > 0).map(([count, is]) => `${number(count)} ${is}`)
  const summary = parts.length === 0 ? [] : [`${parts.join(', ')}.`]
  return [...(state.problem === undefined ? [] : [state.problem]), ...summary]
}

/** Shows one source. */
export async function showSource(io: Io, name: string, options: CommonOptions): Promise<ExitCode> {
  const { sources } = await connect(io, options).call('listSources', {}, { signal: io.signal })
  const found = sources.find(({ source }) => source === name)
  if (found === undefined) throw unknownSource(name)
  const now = io.now()
  const { state } = found
  print(io, options, {
    json: found,
    human: (page) => {
      page.facts([
        ['Source', found.source],
        ['Broker', found.broker],
        ['State', statusText(state.status)],
        ['Problem', state.problem],
        ['In broker', depthText(state)],
        ['Lag', state.lag === undefined ? undefined : number(state.lag)],
        ['Last ingest', ingestText(now, found)],
        ['Open', number(found.open)],
        ['Open by class', byClass(found.openByClass)],
        ['Replaying', none(found.replaying)],
        ['Undecided', none(found.undecided)],
        ['Oldest', oldestText(now, found)],
        ['Expiring', none(found.expiring)],
        ['Set aside', none(found.setAside)],
        ['Total', number(found.count)],
        ['Permissions', found.permissions.join(' ')],
      ])
      for (const { process, status, checkedAt } of state.processes)
        page.line`Process ${process}: ${statusText(status)}, checked ${relative(now, checkedAt)}`
    },
  })
  return EXIT.ok
}

const unknownSource = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `No source "${name}" is visible to you. List them: redrive sources`,
  )

/** Returns the columns of dead letters that are neither open nor settled. Without any, they are left out. */
function unsettled(sources: readonly Source[]) {
  const columns = [
    { title: 'REPLAYING', count: ({ replaying }: Source) => replaying },
    { title: 'UNDECIDED', count: ({ undecided }: Source) => undecided },
  ]
  return columns
    .filter(({ count }) => sources.some((one) => count(one) > 0))
    .map(({ title, count }) => ({
      title,
      of: (one: Source) => number(count(one)),
      isNumber: true as const,
    }))
}

type Source = Output<'listSources'>['sources'][number]

const byClass = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${number(count)}`)
    .join(' · ')
