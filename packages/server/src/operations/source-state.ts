import type { Output } from '@redrive/api'
import { SOURCE_STATUSES, type SourceStatus } from '@redrive/api/enums'
import type { StoredSourceCheck } from '@redrive/catalog'
import { omitUndefined } from '../omit-undefined.ts'
import { missingText } from '../start/brokers.ts'

type SourceState = Output<'listSources'>['sources'][number]['state']

/** Returns the state of a source: the worst that a process found, and the numbers of the newest check. */
export function sourceStateOf(source: string, checks: readonly StoredSourceCheck[]): SourceState {
  const own = checks.filter((check) => check.source === source)
  const [worst] = own.toSorted((a, b) => rankOf(b) - rankOf(a))
  if (worst === undefined) {
    return { status: 'not_checked', problem: NOT_CHECKED, processes: [] }
  }
  const [newest] = own
    .filter(({ unreachable }) => unreachable === undefined)
    .toSorted((a, b) => b.checkedAt - a.checkedAt)
  return {
    status: statusOf(worst),
    ...omitUndefined({ problem: problemOf(worst), depth: newest?.depth, lag: newest?.lag }),
    processes: own.map((check) => ({
      process: check.process,
      status: statusOf(check),
      checkedAt: check.checkedAt,
    })),
  }
}

const NOT_CHECKED =
  'No server process has checked this source within a minute. Start "redrive serve" with the role "ingest", and check that its config has this source.'

function statusOf({ unreachable, missing }: StoredSourceCheck): SourceStatus {
  if (unreachable !== undefined) return 'unreachable'
  return missing.length > 0 ? 'missing_queue' : 'connected'
}

const rankOf = (check: StoredSourceCheck) => SOURCE_STATUSES.indexOf(statusOf(check))

function problemOf({ source, process, unreachable, missing }: StoredSourceCheck) {
  if (unreachable !== undefined)
    return `The process ${process} cannot reach the broker: ${unreachable}. Dead letters stay in the broker; the server tries again.`
  return missing.length > 0 ? missingText(source, missing) : undefined
}
