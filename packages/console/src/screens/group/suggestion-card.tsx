import type { Group, Run } from '@redrive/api'
import { Link } from '@tanstack/react-router'
import { Card } from '../../components/card.tsx'
import { Icon, Mark, type Tone } from '../../components/icon.tsx'
import type { MarkName } from '../../components/shapes.tsx'
import { runPath } from '../../paths.ts'
import { countText } from '../../words/numbers.ts'
import { outcomeText } from '../../words/runs.ts'
import { isGrowing, type Suggestion } from '../../words/suggestion.ts'
import { durationText } from '../../words/times.ts'

interface Reason {
  readonly shape: MarkName
  readonly tone: Tone
  readonly text: string
}

export interface SuggestionCardProps {
  readonly group: Group
  readonly suggestion: Suggestion
  readonly runs: readonly Run[]
  readonly now: number
}

/** The suggested action with the facts behind it. */
export function SuggestionCard({ group, suggestion, runs, now }: SuggestionCardProps) {
  const active = runs.find(({ state }) => ['planned', 'running', 'paused'].includes(state))
  return (
    <Card>
      <div className="suggestion">
        <h2>
          <Icon name="bulb" />
          <span>
            Suggested: {suggestion.title} {suggestion.reason}
          </span>
        </h2>
        <ul>
          {reasonsOf(group, runs, now).map(({ shape, tone, text }) => (
            <li key={text}>
              <Mark shape={shape} tone={tone} />
              {text}
            </li>
          ))}
        </ul>
        {active === undefined ? null : (
          <Link to={runPath(active.id)} className="link small">
            {active.state === 'planned' ? 'Open the plan' : 'Open the run'}
          </Link>
        )}
      </div>
    </Card>
  )
}

function reasonsOf(group: Group, runs: readonly Run[], now: number): readonly Reason[] {
  const quiet = durationText(now - group.lastSeenAt)
  const last = runs.find(({ state }) => state === 'done')
  const refailed = last?.counts.failed_again ?? 0
  return [
    isGrowing(group, now)
      ? { shape: 'warn', tone: 'warn', text: `Still failing: the last failure was ${quiet} ago` }
      : { shape: 'done', tone: 'good', text: `No failures for ${quiet}` },
    ...(group.undecidedCount > 0
      ? [
          {
            shape: 'unknown',
            tone: 'warn',
            text: `${countText(group.undecidedCount)} replayed messages have no confirmation`,
          } as const,
        ]
      : []),
    ...(last === undefined
      ? []
      : [
          {
            shape: refailed > 0 ? 'warn' : 'done',
            tone: refailed > 0 ? 'warn' : 'good',
            text: `The last replay: ${outcomeText(last)}`,
          } as const,
        ]),
    ...(group.regressed
      ? [{ shape: 'back', tone: 'bad', text: 'It failed again after it was resolved' } as const]
      : []),
  ]
}
