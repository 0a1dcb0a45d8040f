import type { Run } from '@redrive/api'
import { Mark } from '../../components/icon.tsx'
import { countText } from '../../words/numbers.ts'
import { stagesOf } from '../../words/run-progress.ts'

const DONE = { shape: 'done', tone: 'good' } as const
const WAITING = { shape: 'wait', tone: 'idle' } as const
const RUNNING = { shape: 'run', tone: 'run' } as const
const PAUSED = { shape: 'pause', tone: 'warn' } as const

/** The stages of the canary and the rest. */
export function Stages({ run }: { readonly run: Run }) {
  const stages = stagesOf(run)
  const current = stages.findIndex(({ size, settled }) => settled < size)
  const active = run.state === 'paused' ? PAUSED : RUNNING
  return (
    <ol className="stages" aria-label="Stages">
      {stages.map(({ size, settled, isLast }, at) => (
        <li
          key={at}
          data-current={at === current ? active.tone : undefined}
          data-last={isLast ? '' : undefined}
        >
          <Mark {...(settled === size ? DONE : at === current ? active : WAITING)} />
          {isLast && stages.length > 1
            ? `Remaining at ${run.options.ratePerSecond} per second`
            : null}
          <span className={isLast && stages.length > 1 ? 'quiet' : ''}>
            {at === current && size > 1
              ? `${countText(settled)} of ${countText(size)}`
              : countText(size)}
          </span>
        </li>
      ))}
    </ol>
  )
}
