import { Icon } from '../../components/icon.tsx'

const STEPS = ['Select', 'Preview and pace', 'Approve', 'Run'] as const

/** Where the reader is in the wizard. */
export const Steps = ({ current }: { readonly current: 1 | 2 | 3 | 4 }) => (
  <ol className="steps only-wide" aria-label="Steps of a replay">
    {STEPS.map((name, at) => (
      <li
        key={name}
        aria-current={at + 1 === current ? 'step' : undefined}
        data-done={at + 1 < current ? '' : undefined}
      >
        <span className="steps-number" aria-hidden="true">
          {at + 1 < current ? <Icon name="check" size={12} /> : at + 1}
        </span>
        {name}
        {at + 1 < current ? <span className="visually-hidden"> (done)</span> : null}
      </li>
    ))}
  </ol>
)
