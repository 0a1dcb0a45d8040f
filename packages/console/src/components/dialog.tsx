import { type ReactNode, useId, useRef, useState } from 'react'
import { countText } from '../words/numbers.ts'
import { Button } from './button.tsx'
import { Command } from './command.tsx'
import { useModal } from './modal.ts'
import './dialog.css'

export interface DialogProps {
  readonly title: string
  readonly children: ReactNode
  readonly footer?: ReactNode
  readonly onClose: () => void
}

/**
 * A modal dialog. The native element keeps the focus inside, closes on Escape and returns the focus. A library would
 * add an inline style sheet, which the content security policy forbids.
 */
export function Dialog({ title, children, footer, onClose }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useModal(element)
  return (
    <dialog
      ref={element}
      className="dialog"
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      <div className="dialog-box">
        <header className="card-head">
          <h2 id={heading}>{title}</h2>
        </header>
        {children}
        {footer === undefined ? null : <footer className="dialog-foot">{footer}</footer>}
      </div>
    </dialog>
  )
}

/** From this number of messages on, the count must be typed. */
const TYPED_FROM = 100

export interface ConfirmProps {
  /** The action with its count: Discard 573 messages. */
  readonly title: string
  /** The effect and how to undo it. */
  readonly children: ReactNode
  readonly cancelLabel: string
  readonly confirmLabel: string
  readonly isDanger?: boolean
  /** Number of messages that change. */
  readonly count?: number
  /** Shows a field for the reason. */
  readonly hasReason?: boolean
  /** Whether the action needs a reason. */
  readonly isReasonRequired?: boolean
  readonly cli: string
  readonly isBusy?: boolean
  readonly problem?: string | undefined
  /** Why the action is not possible now. */
  readonly disabledReason?: string | undefined
  readonly onConfirm: (reason: string) => void
  readonly onClose: () => void
}

/** A dialog before a change. The focus is on the least harmful button. */
export function Confirm(props: ConfirmProps) {
  const { title, children, cancelLabel, confirmLabel, count = 0, cli, problem } = props
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const mustType = count >= TYPED_FROM
  const isTyped = !mustType || typed.replaceAll(/\D/g, '') === String(count)
  const refusal =
    props.disabledReason ??
    (props.isBusy ? 'The change is being saved.' : undefined) ??
    (props.isReasonRequired && reason.trim() === '' ? 'Enter a reason.' : undefined) ??
    (isTyped ? undefined : `Type ${countText(count)} to confirm.`)
  return (
    <Dialog
      title={title}
      onClose={props.onClose}
      footer={
        <>
          <div className="dialog-cli">
            <Command text={cli} label="Copy the command" />
          </div>
          <Button onClick={props.onClose} data-first="">
            {cancelLabel}
          </Button>
          <Button
            {...(props.isDanger ? { kind: 'danger' } : { kind: 'primary' })}
            disabledReason={refusal}
            onClick={() => props.onConfirm(reason.trim())}
          >
            {confirmLabel}
          </Button>
        </>
      }
    >
      <div className="dialog-body">
        {children}
        {props.hasReason ? (
          <label className="field">
            <span>Reason</span>
            <input value={reason} maxLength={1_000} onChange={(e) => setReason(e.target.value)} />
          </label>
        ) : null}
        {mustType ? (
          <label className="field">
            <span>
              Type <code>{countText(count)}</code> to confirm
            </span>
            <input
              className="dialog-typed"
              inputMode="numeric"
              autoComplete="off"
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </label>
        ) : null}
        {problem === undefined ? null : (
          <p role="alert" className="dialog-problem">
            {problem}
          </p>
        )}
      </div>
    </Dialog>
  )
}
