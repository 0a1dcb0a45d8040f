import { type ReactNode, useId, useRef, useState } from 'react'
import { Icon } from './icon.tsx'
import { Kbd } from './kbd.tsx'
import { useModal } from './modal.ts'
import './palette.css'

export interface PaletteOption {
  readonly id: string
  readonly section: string
  readonly icon: ReactNode
  readonly text: ReactNode
  readonly note?: string | undefined
  readonly onChoose: () => void
}

export interface PaletteProps {
  readonly typed: string
  readonly onType: (typed: string) => void
  readonly options: readonly PaletteOption[]
  readonly onClose: () => void
}

/** Goes to a group, source, run or message, or starts an action. */
export function Palette({ typed, onType, options, onClose }: PaletteProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [chosen, setChosen] = useState(0)
  const list = useId()
  const at = Math.min(chosen, options.length - 1)
  useModal(dialog)
  const choose = (option: PaletteOption | undefined) => {
    onClose()
    option?.onChoose()
  }
  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Go to"
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose()
      }}
    >
      <div className="palette-input">
        <Icon name="search" className="faint" />
        <input
          role="combobox"
          aria-label="Go to"
          aria-expanded={options.length > 0}
          aria-controls={list}
          aria-activedescendant={options.length > 0 ? `${list}-${at}` : undefined}
          placeholder="Groups, sources, runs, or an exact id or key"
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={({ target }) => {
            setChosen(0)
            onType(target.value)
          }}
          onKeyDown={(event) => {
            const step = STEPS[event.key]
            if (event.key === 'Enter') choose(options[at])
            if (step === undefined) return
            event.preventDefault()
            const next = (at + step + options.length) % Math.max(options.length, 1)
            setChosen(next)
            document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: 'nearest' })
          }}
        />
        <Kbd keys="esc" />
      </div>
      <div className="palette-list" id={list} role="listbox" aria-label="Results">
        {options.map((option, index) => (
          <div key={option.id} role="presentation">
            {option.section === options[index - 1]?.section ? null : (
              <span className="palette-section" role="presentation">
                {option.section}
              </span>
            )}
            <div
              id={`${list}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === at}
              className="palette-option"
              onClick={() => choose(option)}
              onKeyDown={(event) => event.key === 'Enter' && choose(option)}
              onPointerMove={() => setChosen(index)}
            >
              <span className="palette-icon">{option.icon}</span>
              <span className="cut">{option.text}</span>
              <span className="faint small cut">{option.note}</span>
            </div>
          </div>
        ))}
      </div>
      {options.length === 0 ? <p className="palette-none quiet">No match.</p> : null}
      <footer className="card-foot only-wide">
        <Kbd keys="↑ ↓" /> choose <Kbd keys="↵" /> open
        <span className="grow" />
        Paste an id or a key to open it
      </footer>
    </dialog>
  )
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
