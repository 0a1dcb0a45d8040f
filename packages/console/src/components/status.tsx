import { Mark, type Tone } from './icon.tsx'
import { Peer } from './peer.tsx'
import type { MarkName } from './shapes.tsx'
import './status.css'

interface State {
  readonly shape: MarkName
  readonly tone: Tone
  readonly word: string
  /** Whether the word has the colour in lists too: it is an exception that a reader must notice. */
  readonly isLoud?: true
}

// biome-ignore format: one row per state
export const STATES = {
  open: { shape: 'open', tone: 'bad', word: 'Open' },
  regressed: { shape: 'back', tone: 'bad', word: 'Regressed', isLoud: true },
  muted: { shape: 'off', tone: 'idle', word: 'Muted' },
  resolved: { shape: 'done', tone: 'good', word: 'Resolved' },
  replaying: { shape: 'run', tone: 'run', word: 'Replaying' },
  unknown: { shape: 'unknown', tone: 'warn', word: 'Unknown', isLoud: true },
  not_returned: { shape: 'done', tone: 'idle', word: 'Not returned' },
  discarded: { shape: 'skip', tone: 'idle', word: 'Discarded' },
  expired: { shape: 'time', tone: 'idle', word: 'Expired' },
  planned: { shape: 'wait', tone: 'warn', word: 'Awaiting approval' },
  running: { shape: 'run', tone: 'run', word: 'Running' },
  paused: { shape: 'pause', tone: 'warn', word: 'Paused', isLoud: true },
  done: { shape: 'done', tone: 'good', word: 'Done' },
  cancelled: { shape: 'skip', tone: 'idle', word: 'Cancelled' },
  plan_expired: { shape: 'time', tone: 'idle', word: 'Plan expired' },
  failed_again: { shape: 'fail', tone: 'bad', word: 'Refailed', isLoud: true },
  published: { shape: 'run', tone: 'run', word: 'Published' },
  queued: { shape: 'wait', tone: 'idle', word: 'Queued' },
  skipped: { shape: 'skip', tone: 'idle', word: 'Skipped' },
  connected: { shape: 'done', tone: 'good', word: 'Connected' },
  not_checked: { shape: 'wait', tone: 'idle', word: 'Not checked' },
  missing_queue: { shape: 'fail', tone: 'bad', word: 'Queue missing', isLoud: true },
  unreachable: { shape: 'fail', tone: 'bad', word: 'Unreachable', isLoud: true },
  set_aside: { shape: 'warn', tone: 'warn', word: 'Set aside' },
  requested: { shape: 'wait', tone: 'warn', word: 'Awaiting approval' },
  replayed: { shape: 'done', tone: 'good', word: 'Replayed' },
  refused: { shape: 'off', tone: 'warn', word: 'Refused', isLoud: true },
  denied: { shape: 'fail', tone: 'bad', word: 'Denied', isLoud: true },
  failed: { shape: 'fail', tone: 'bad', word: 'Failed', isLoud: true },
  viewed: { shape: 'open', tone: 'idle', word: 'Viewed' },
  no_result: { shape: 'wait', tone: 'idle', word: 'No result' },
  behind: { shape: 'warn', tone: 'warn', word: 'Behind', isLoud: true },
} as const satisfies Readonly<Record<string, State>>
export type StateName = keyof typeof STATES

export interface StatusProps {
  readonly state: StateName
  /** Replaces the word of the state. */
  readonly text?: string
}

export interface TitledStatusProps extends StatusProps {
  /** Replaces the word of the state by the title of a run, which has the name of its source. */
  readonly title?: string
}

/** A status in a list: the shape has the colour, and the word only for exceptions. */
export function Status({ state, text, title }: TitledStatusProps) {
  const { shape, tone, word, isLoud }: State = STATES[state]
  return (
    <span
      className="status"
      data-tone={isLoud ? tone : undefined}
      data-titled={title === undefined ? undefined : ''}
    >
      <Mark shape={shape} tone={tone} />
      {title === undefined ? (text ?? word) : <Peer text={title} most={200} />}
    </span>
  )
}

/** A status in the head of a page. */
export function Pill({ state, text }: StatusProps) {
  const { shape, tone, word }: State = STATES[state]
  return (
    <span className="pill" data-tone={tone}>
      <Mark shape={shape} tone={tone} />
      {text ?? word}
    </span>
  )
}

export const Tag = ({ text, tone }: { readonly text: string; readonly tone?: Tone }) => (
  <span className="tag" data-tone={tone}>
    {text}
  </span>
)
