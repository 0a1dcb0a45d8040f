import { lasting } from '../harness/wait.ts'

/** An alert as Alertmanager shows it. */
export interface SeenAlert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Time of the harness, in ms, when Alertmanager showed it for the first time. */
  readonly firstAtMs: number
  isActive: boolean
}

/** All alerts that Alertmanager has shown. */
export interface AlertLog {
  /** Returns the alerts about this source or dependency. */
  about(name: string): readonly SeenAlert[]
  /** Returns the alerts about none of these. */
  aboutNoneOf(names: readonly string[]): readonly SeenAlert[]
  end(): Promise<void>
}

interface ShownAlert extends Pick<SeenAlert, 'labels' | 'annotations'> {
  readonly fingerprint: string
  readonly startsAt: string
}

/** 200 ms: finer than the second between two evaluations. */
const LOOK_MS = 200

/** Reads the active alerts of Alertmanager repeatedly, and keeps them. */
export function logAlerts(url: string): AlertLog {
  const seen = new Map<string, SeenAlert>()
  let isEnded = false
  const look = async () => {
    const response = await fetch(`${url}/api/v2/alerts`)
    const shown = (await response.json()) as readonly ShownAlert[]
    const active = new Set(shown.map(keyOf))
    for (const [key, alert] of seen) alert.isActive = active.has(key)
    for (const { labels, annotations, ...rest } of shown) {
      const key = keyOf(rest)
      if (seen.has(key)) continue
      seen.set(key, { labels, annotations, firstAtMs: performance.now(), isActive: true })
    }
  }
  const looks = (async () => {
    while (!isEnded) {
      await look()
      await lasting(LOOK_MS)
    }
  })()
  // A failure is reported by `end`, and by the cases, which then miss their alerts.
  looks.catch(() => undefined)
  return {
    about: (name) => [...seen.values()].filter(({ labels }) => nameIn(labels) === name),
    aboutNoneOf: (names) =>
      [...seen.values()].filter(({ labels }) => !names.includes(nameIn(labels) ?? '')),
    async end() {
      isEnded = true
      await looks
    },
  }
}

const keyOf = ({ fingerprint, startsAt }: Pick<ShownAlert, 'fingerprint' | 'startsAt'>) =>
  `${fingerprint} ${startsAt}`

const nameIn = ({ source, dependency }: SeenAlert['labels']) => source ?? dependency
