import { randomBytes } from 'node:crypto'
import { brokenIf, type Violation } from '../evidence/evidence.ts'
import { becomesTrue } from '../harness/wait.ts'
import { type AlertCase, MINUTE } from './alert-case.ts'
import type { AlertLog, SeenAlert } from './alert-log.ts'
import { placeOf } from './place.ts'
import { runbooks } from './rules.ts'
import type { Stage } from './stage.ts'

/**
 * 30 s for what is not scaled: a scrape and an evaluation (1 s each), the cached counts of the server (5 s), the
 * ingest, the breaker's failures, and a machine that does other work.
 */
const REACTION_MS = 30_000
/** The longest window of a rule, without scale. */
const WINDOW_MS = 15 * MINUTE
/** 60 s in addition for the cached counts and the next retry, which take seconds on an idle machine. */
const RESOLVE_MS = 60_000

export interface PlayedCase {
  readonly row: readonly string[]
  readonly broken: readonly Violation[]
}

/** Different in each run, so that a run finds nothing of an earlier one. */
const RUN = randomBytes(3).toString('hex')

/** The name of the source and the dependency of a case. */
export const sourceOf = ({ name }: Pick<AlertCase, 'name'>): string => `drill-${RUN}-${name}`

/** Plays a case. Returns the row of the table and the broken rules. */
export async function playCase(one: AlertCase, stage: Stage): Promise<PlayedCase> {
  const { alert, also = [], afterMs } = one
  const source = sourceOf(one)
  const { addresses, alerts, server, factor } = stage
  const metricsPort = stage.portOf(source)
  const owned = placeOf({ source, addresses, client: server.client, metricsPort, factor })
  const expected = [alert, ...also]
  const allowedMs = afterMs / factor + REACTION_MS
  try {
    const repair = await one.begin(owned.place)
    const atMs = (name: string) =>
      alertOf(alerts, source, name)?.firstAtMs ?? Number.POSITIVE_INFINITY
    const afterFaultMs = (name: string) => atMs(name) - owned.begunAtMs
    const haveFired = () => expected.every((name) => afterFaultMs(name) < allowedMs)
    const leftMs = owned.begunAtMs + allowedMs - performance.now()
    const isComplete = await becomesTrue(haveFired, { withinMs: leftMs })
    const resolvedMs = isComplete ? await resolved(stage, source, repair) : undefined
    const others = unexpectedOf(stage, source, expected)
    const wrong = expected.flatMap((name) => wrongIn(alertOf(alerts, source, name), source))
    return {
      row: [
        one.name,
        expected.join(', '),
        seconds(allowedMs),
        seconds(afterFaultMs(alert)),
        wrong.length === 0 ? 'yes' : 'NO',
        others.join(', ') || 'none',
        seconds(resolvedMs),
      ],
      broken: [
        ...expected
          .filter((name) => afterFaultMs(name) >= allowedMs)
          .map((name): Violation => ({ rule: 'missing alert', text: name })),
        ...others.map((name): Violation => ({ rule: 'false alert', text: name })),
        ...wrong.map((text): Violation => ({ rule: 'wrong alert', text })),
        ...brokenIf([
          isComplete && resolvedMs === undefined,
          'not resolved',
          activeAlerts(alerts, source).map(nameOf).join(', '),
        ]),
      ],
    }
  } finally {
    await owned.end()
  }
}

const alertOf = (alerts: AlertLog, source: string, name: string) =>
  alerts.about(source).find((one) => nameOf(one) === name)

const activeAlerts = (alerts: AlertLog, source: string) =>
  alerts.about(source).filter(({ isActive }) => isActive)

/** Repairs the fault. Returns the time until no alert about the source is active; undefined if one stays. */
async function resolved(
  { alerts, factor }: Stage,
  source: string,
  repair: () => Promise<unknown>,
): Promise<number | undefined> {
  const repairedAtMs = performance.now()
  await repair()
  const isQuiet = () => activeAlerts(alerts, source).length === 0
  const withinMs = WINDOW_MS / factor + RESOLVE_MS
  const isResolved = await becomesTrue(isQuiet, { withinMs })
  return isResolved ? performance.now() - repairedAtMs : undefined
}

/** Returns the names of other alerts about the source, and of alerts that belong to no case. */
function unexpectedOf(
  { alerts, sources }: Stage,
  source: string,
  expected: readonly string[],
): readonly string[] {
  const others = alerts
    .about(source)
    .map(nameOf)
    .filter((name) => !expected.includes(name))
  return [...new Set([...others, ...alerts.aboutNoneOf(sources).map(nameOf)])]
}

/** Returns what the texts of an alert lack: the name of the source, and the link to an existing runbook. */
function wrongIn(alert: SeenAlert | undefined, source: string): readonly string[] {
  if (alert === undefined) return []
  const { summary = '', runbook_url: url = '' } = alert.annotations
  const name = nameOf(alert)
  const [, section = ''] = url.split('/docs/runbooks.md#')
  return [
    ...(summary.includes(source)
      ? []
      : [`${name}: the summary does not name ${source}: ${summary}`]),
    ...(section === name.toLowerCase() && runbooks().has(section)
      ? []
      : [`${name}: there is no runbook at ${url}`]),
  ]
}

const nameOf = ({ labels }: Pick<SeenAlert, 'labels'>): string =>
  labels['alertname'] ?? 'an alert without a name'
const seconds = (ms = Number.POSITIVE_INFINITY) =>
  Number.isFinite(ms) ? `${(ms / 1_000).toFixed(1)} s` : 'never'
