import { useEffect, useRef } from 'react'
import { singleKeys } from './preferences.ts'

/** What keys do: `j`, `Shift+x`, `g o`, `Mod+k` (Ctrl, or Cmd on a Mac). */
export type KeyMap = Readonly<Record<string, () => void>>

interface Layer {
  readonly keys: () => KeyMap
}

const layers: Layer[] = []
/** 1.5 s to press the second key of a sequence such as `g o`. */
const SEQUENCE_MS = 1_500
let pending: { readonly key: string; readonly at: number } | undefined

/** Binds keys while the component is mounted. A later component wins over an earlier one. */
export function useKeys(keys: KeyMap): void {
  const latest = useRef(keys)
  useEffect(() => {
    latest.current = keys
  })
  useEffect(() => {
    const layer = { keys: () => latest.current }
    layers.push(layer)
    return () => void layers.splice(layers.indexOf(layer), 1)
  }, [])
}

/** Starts to listen to the keyboard. Returns the function that ends it. */
export function listenToKeys(): () => void {
  addEventListener('keydown', onKeyDown)
  return () => removeEventListener('keydown', onKeyDown)
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return
  const name = nameOf(event)
  // The element inside a shadow root: the target is only its host.
  const target = event.composedPath()[0] ?? null
  const isCommand = name.startsWith('Mod+')
  if (!isCommand && (isTyping(target) || isInDialog(event.target))) return
  if (name === 'Enter' && isControl(target)) return
  if (!isCommand && name !== 'Escape' && name.length <= 1 && singleKeys.get() === 'off') return
  const isSecond = pending !== undefined && event.timeStamp - pending.at < SEQUENCE_MS
  const sequence = isSecond ? `${pending?.key} ${name}` : name
  pending = undefined
  const action = find(sequence) ?? find(name)
  if (action !== undefined) {
    event.preventDefault()
    action()
  } else if (startsSequence(name)) {
    pending = { key: name, at: event.timeStamp }
  }
}

function nameOf({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): string {
  if (altKey) return `Alt+${key}`
  if (ctrlKey || metaKey) return `Mod+${key.toLowerCase()}`
  return shiftKey && /^[A-Z]$/.test(key) ? `Shift+${key.toLowerCase()}` : key
}

const find = (name: string) =>
  layers
    .toReversed()
    .find(({ keys }) => Object.hasOwn(keys(), name))
    ?.keys()[name]

const startsSequence = (name: string) =>
  layers.some(({ keys }) => Object.keys(keys()).some((one) => one.startsWith(`${name} `)))

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('input:not([type=checkbox]), textarea, select'))

/** Enter on a link or button belongs to it, also while a row of a list is marked. */
const isControl = (target: EventTarget | null) =>
  target instanceof Element && target.closest('a, button, summary, [role^=menuitem]') !== null

/** A dialog has its own keys. Keys of the page below it must not act. */
const isInDialog = (target: EventTarget | null) =>
  target instanceof Element && target.closest('dialog, [popover]') !== null
