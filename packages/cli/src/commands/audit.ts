import type { AuditEntry } from '@redrive/api'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { defined } from '../server/filter.ts'
import { type Printable, red } from '../text/painted.ts'
import { number, relative } from '../text/format.ts'

export interface ListAuditOptions extends CommonOptions {
  readonly person?: string
  readonly source?: string
  readonly operation?: string
  readonly subject?: string
  readonly limit: number
  readonly before?: number
}

export async function listAudit(io: Io, options: ListAuditOptions): Promise<ExitCode> {
  const { person, source, operation, subject, limit, before } = options
  const query = defined({ person, source, operation, subject, limit, before })
  const answer = await connect(io, options).call('listAudit', { query }, { signal: io.signal })
  print(io, options, {
    json: answer,
    lines: answer.entries,
    human: (page) => {
      page.table<AuditEntry>(
        [
          { title: '#', of: ({ sequence }) => number(sequence), isNumber: true },
          { title: 'WHEN', of: ({ at }) => relative(io.now(), at) },
          { title: 'WHO', of: ({ person: who }) => who, least: 8 },
          { title: 'VIA', of: ({ via }) => via },
          { title: 'OPERATION', of: (entry) => entry.operation },
          { title: 'OUTCOME', of: outcomeOf },
          { title: 'SOURCE', of: (entry) => entry.source ?? '', least: 8 },
          { title: 'SUBJECT', of: (entry) => entry.subject ?? '', least: 8 },
        ],
        answer.entries,
      )
    },
  })
  if (answer.nextCursor !== undefined) say(io)`More results: add --before ${answer.nextCursor}`
  return EXIT.ok
}

const outcomeOf = ({ outcome }: AuditEntry): Printable =>
  outcome === 'denied' || outcome === 'failed' ? red(outcome) : outcome
