import type { ReactNode } from 'react'
import { Button } from '../components/button.tsx'
import { Kbd } from '../components/kbd.tsx'
import { countText } from '../words/numbers.ts'
import './list.css'

export interface NewRowsProps {
  readonly count: number
  /** Name of one row: group. */
  readonly noun: string
  readonly onShow: () => void
}

/** The number of new rows. They are shown when the user asks for them, so that no row moves under the pointer. */
export const NewRows = ({ count, noun, onShow }: NewRowsProps) =>
  count === 0 ? null : (
    <button type="button" className="list-new" onClick={onShow}>
      <b>{countText(count)} new</b> {count === 1 ? noun : `${noun}s`}. Show
    </button>
  )

export interface SelectionBarProps {
  readonly label: string
  readonly children: ReactNode
  readonly onClear: () => void
}

/** Actions on the selected rows, at the bottom of the window. */
export const SelectionBar = ({ label, children, onClear }: SelectionBarProps) => (
  <section className="selection-bar" aria-label={label}>
    {children}
    <Button size="small" kind="ghost" onClick={onClear}>
      Clear <Kbd keys="esc" />
    </Button>
  </section>
)
