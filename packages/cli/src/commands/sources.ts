import type { Output } from '@redrive/api'
import type { SourceStatus } from '@redrive/api/enums'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { age, number, relative } from '../text/format.ts'
import { type Printable, red } from '../text/painted.ts'

/** Lists sources with their open dead letters. */
export async function listSources(io: Io, options: CommonOptions): Promise<ExitCode> {
  const answer = await connect(io, options).call('listSources', {}, { signal: io.signal })
  const now = io.now()
  print(io, options, {
    json: answer,
    lines: answer.sources,
    human: (page) => {
      if (answer.sources.length === 0) page.line`No sources are visible to you.`
      else {
        page.table(
          [
            { title: 'SOURCE', of: ({ source }) => source, least: 10 },
            { title: 'STATE', of: ({ state }) => statusText(state.status) },
            {
              title: 'IN BROKER',
              of: ({ state }) => (state.depth === undefined ? '?' : number(state.depth)),
              isNumber: true,
            },
            { title: 'OPEN', of: ({ open }) => number(open), isNumber: true },
            ...unsettled(answer.sources),
            { title: 'TOTAL', of: ({ count }) => number(count), isNumber: true },
            {
              title: 'OLDEST',
              of: ({ oldestAt }) => (oldestAt === undefined ? '' : age(now - oldestAt)),
              isNumber: true,
            },
            {
              title: 'LAST INGEST',
              of: ({ lastIngestedAt }) =>
                lastIngestedAt === undefined ? 'never' : relative(now, lastIngestedAt),
            },
            { title: 'EXPIRING', of: ({ expiring }) => expiringText(expiring), isNumber: true },
            {
              title: 'SET ASIDE',
              of: ({ setAside }) => (setAside === 0 ? '' : number(setAside)),
              isNumber: true,
            },
            { title: 'OPEN BY CLASS', of: ({ openByClass }) => byClass(openByClass), least: 10 },
            { title: 'PERMISSIONS', of: ({ permissions }) => permissions.join(' '), least: 8 },
          ],
          answer.sources,
        )
        for (const { source, state } of answer.sources) {
          if (state.problem !== undefined) page.line`\n${red(source)}: ${state.problem}`
        }
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

const expiringText = (expiring: number) => (expiring === 0 ? '' : number(expiring))

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
