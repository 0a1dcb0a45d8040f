import type { ReactNode } from 'react'
import { Mark, type Tone } from './icon.tsx'
import type { MarkName } from './shapes.tsx'
import { Time } from './time.tsx'
import './timeline.css'

export interface TimelineEvent {
  readonly id: string
  readonly at: number
  readonly text: ReactNode
  readonly detail?: ReactNode
  /** Default: a small dot. */
  readonly mark?: { readonly shape: MarkName; readonly tone: Tone }
}

/** Events, newest first. */
export const Timeline = ({ events }: { readonly events: readonly TimelineEvent[] }) => (
  <ol className="timeline">
    {events.map(({ id, at, text, detail, mark }) => (
      <li key={id}>
        {mark === undefined ? <span className="timeline-dot" /> : <Mark {...mark} />}
        <div className="timeline-line">
          <span>{text}</span>
          <span className="faint">
            <Time at={at} />
          </span>
        </div>
        {detail === undefined ? null : <div className="timeline-detail">{detail}</div>}
      </li>
    ))}
  </ol>
)
