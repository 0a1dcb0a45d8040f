import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { defined } from '../server/filter.ts'
import { number, relative } from '../text/format.ts'

export interface ListExpiredOptions extends CommonOptions {
  readonly source?: readonly string[]
  readonly limit: number
  readonly cursor?: string
}

/** Lists how many dead letters retention has deleted, by source, day and status. */
export async function listExpired(io: Io, options: ListExpiredOptions): Promise<ExitCode> {
  const { source: sources, limit, cursor } = options
  const query = defined({ sources: sources && [...sources], limit, cursor })
  const answer = await connect(io, options).call('listExpired', { query }, { signal: io.signal })
  print(io, options, {
    json: answer,
    lines: answer.days,
    human: (page) => {
      if (answer.days.length === 0) page.line`Retention has deleted no dead letters.`
      else {
        page.table(
          [
            { title: 'DAY OF FAILURE', of: ({ day }) => day },
            { title: 'SOURCE', of: ({ source }) => source, least: 10 },
            { title: 'EXPIRED', of: ({ byStatus }) => byStatusText(byStatus), least: 10 },
            {
              title: 'DELETED',
              of: ({ expiredAt }) => (expiredAt === undefined ? '' : relative(io.now(), expiredAt)),
            },
          ],
          answer.days,
        )
      }
    },
  })
  if (answer.nextCursor !== undefined) say(io)`More results: add --cursor ${answer.nextCursor}`
  return EXIT.ok
}

const byStatusText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([status, count]) => `${number(count)} ${status}`)
    .join(' · ')
