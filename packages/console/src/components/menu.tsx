import { type ReactNode, useId, useRef } from 'react'
import { lookOf, type ButtonLook } from './button.tsx'
import { Kbd } from './kbd.tsx'
import './menu.css'

export interface MenuItem {
  readonly label: string
  readonly keys?: string
  readonly isChosen?: boolean
  /** Whether an item of several choices is on. The menu stays open. */
  readonly isChecked?: boolean
  /** Why it is not possible. The item stays visible. */
  readonly disabledReason?: string | undefined
  readonly onChoose: () => void
}

export interface MenuProps extends ButtonLook {
  /** Name of the button for screen readers. Default: its text. */
  readonly label?: string
  readonly children: ReactNode
  readonly items: readonly MenuItem[]
}

/** A button with a menu. The native popover closes on Escape and on a click outside. */
export function Menu({ label, children, items, ...look }: MenuProps) {
  const id = useId()
  const menu = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const close = () => menu.current?.hidePopover()
  return (
    <span className="menu-anchor">
      <button
        ref={button}
        type="button"
        aria-label={label}
        aria-haspopup="menu"
        popoverTarget={id}
        {...lookOf(look)}
      >
        {children}
      </button>
      <div
        ref={menu}
        id={id}
        className="menu"
        role="menu"
        popover="auto"
        onToggle={({ newState }) => {
          if (newState !== 'open' || menu.current === null || button.current === null) return
          place(menu.current, button.current)
          itemsOf(menu.current)[0]?.focus()
        }}
        onKeyDown={(event) => moveInMenu(event, menu.current)}
      >
        {items.map(({ label: text, keys, isChosen, isChecked, disabledReason, onChoose }) => (
          <button
            key={text}
            type="button"
            role={roleOf(isChosen, isChecked)}
            aria-checked={isChosen ?? isChecked}
            aria-disabled={disabledReason === undefined ? undefined : true}
            title={disabledReason}
            tabIndex={-1}
            onClick={() => {
              if (disabledReason !== undefined) return
              if (isChecked === undefined) close()
              onChoose()
            }}
          >
            {text}
            <span className="grow" />
            {(isChosen ?? isChecked) ? <span aria-hidden="true">✓</span> : null}
            {keys === undefined ? null : <Kbd keys={keys} />}
          </button>
        ))}
      </div>
    </span>
  )
}

const roleOf = (isChosen: boolean | undefined, isChecked: boolean | undefined) =>
  isChecked !== undefined
    ? 'menuitemcheckbox'
    : isChosen === undefined
      ? 'menuitem'
      : 'menuitemradio'

const itemsOf = (menu: HTMLElement) => [...menu.querySelectorAll<HTMLElement>('[role^=menuitem]')]

/** Puts the menu below its button, inside the window. */
function place(menu: HTMLElement, button: HTMLElement): void {
  const at = button.getBoundingClientRect()
  const left = Math.min(at.left, innerWidth - menu.offsetWidth - 8)
  const below = at.bottom + 4
  const isAbove = below + menu.offsetHeight > innerHeight
  menu.style.left = `${Math.max(8, left)}px`
  menu.style.top = `${isAbove ? Math.max(8, at.top - menu.offsetHeight - 4) : below}px`
}

const MOVES: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowDown: (at, count) => (at + 1) % count,
  ArrowUp: (at, count) => (at - 1 + count) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
}

function moveInMenu(event: React.KeyboardEvent, menu: HTMLElement | null): void {
  const move = MOVES[event.key]
  if (move === undefined || menu === null) return
  event.preventDefault()
  const items = itemsOf(menu)
  items[move(items.indexOf(document.activeElement as HTMLElement), items.length)]?.focus()
}
