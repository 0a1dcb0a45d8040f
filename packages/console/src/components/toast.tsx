import { createStore, useStore } from '../store.ts'
import { Button } from './button.tsx'
import { Icon, Mark, type Tone } from './icon.tsx'
import type { MarkName } from './shapes.tsx'
import './toast.css'

export interface ToastText {
  readonly text: string
  readonly tone: 'good' | 'warn' | 'run' | 'bad'
  /** A way back, where there is one. */
  readonly action?: { readonly label: string; readonly onChoose: () => void }
}

interface Toast extends ToastText {
  readonly id: number
}

const SHAPES: Readonly<Record<ToastText['tone'], MarkName>> = {
  good: 'done',
  warn: 'off',
  run: 'run',
  bad: 'fail',
}

/** 6 s. Errors stay until they are closed. */
const SHOWN_MS = 6_000
const toasts = createStore<readonly Toast[]>([])
let lastId = 0

/** Shows a short text. It is never the only sign of a result. */
export function toast(text: ToastText): void {
  lastId += 1
  const id = lastId
  toasts.set([...toasts.get(), { ...text, id }])
  if (text.tone !== 'bad' && text.tone !== 'warn') setTimeout(() => close(id), SHOWN_MS)
}

const close = (id: number) => toasts.set(toasts.get().filter((one) => one.id !== id))

export function Toasts() {
  const all = useStore(toasts)
  return (
    <div className="toasts" role="status">
      {all.map((one) => (
        <ToastLine key={one.id} {...one} onClose={() => close(one.id)} />
      ))}
    </div>
  )
}

export function ToastLine({ text, tone, action, onClose }: ToastText & { onClose: () => void }) {
  return (
    <div className="toast">
      <Mark shape={SHAPES[tone]} tone={tone satisfies Tone} />
      <span className="grow">{text}</span>
      {action === undefined ? null : (
        <Button
          size="small"
          onClick={() => {
            onClose()
            action.onChoose()
          }}
        >
          {action.label}
        </Button>
      )}
      <Button size="small" kind="ghost" isIcon aria-label="Close" onClick={onClose}>
        <Icon name="close" size={12} />
      </Button>
    </div>
  )
}
