import type { ReactNode } from 'react'
import './tabs.css'

export interface Tab<T extends string> {
  readonly name: T
  readonly label: string
  readonly count?: string | undefined
}

export interface TabsProps<T extends string> {
  readonly label: string
  readonly tabs: readonly Tab<T>[]
  readonly current: T
  readonly onChange: (name: T) => void
  readonly children?: ReactNode
}

/** Tabs of a page. The arrow keys move between them. `children` is at the end of the line. */
export function Tabs<T extends string>(props: TabsProps<T>) {
  const { label, tabs, current, onChange, children } = props
  return (
    <div className="tabs">
      <div className="tabs-list" role="tablist" aria-label={label}>
        {tabs.map(({ name, label: text, count }) => (
          <button
            key={name}
            type="button"
            role="tab"
            aria-selected={name === current}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChange(name)}
            onKeyDown={(event) => moveOnArrow(event)}
          >
            {text}
            {count === undefined ? null : <span className="tabs-count">{count}</span>}
          </button>
        ))}
      </div>
      {children}
    </div>
  )
}

const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 }

/** Moves focus to the neighbour and chooses it, as the pattern of tabs and of radio buttons requires. */
function moveOnArrow(event: React.KeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key]
  const all = [...(event.currentTarget.parentElement?.children ?? [])] as HTMLElement[]
  if (step === undefined) return
  event.preventDefault()
  const next = all[(all.indexOf(event.currentTarget) + step + all.length) % all.length]
  next?.focus()
  next?.click()
}

export interface SegmentsProps<T extends string> {
  readonly label: string
  readonly options: readonly { readonly name: T; readonly label: string }[]
  readonly current: T
  readonly onChange: (name: T) => void
}

/** A choice of a few values. */
export function Segments<T extends string>({
  label,
  options,
  current,
  onChange,
}: SegmentsProps<T>) {
  return (
    <div className="segments" role="radiogroup" aria-label={label}>
      {options.map(({ name, label: text }) => (
        <button
          key={name}
          type="button"
          role="radio"
          aria-checked={name === current}
          tabIndex={name === current ? 0 : -1}
          onClick={() => onChange(name)}
          onKeyDown={moveOnArrow}
        >
          {text}
        </button>
      ))}
    </div>
  )
}
