import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react'
import './button.css'

export interface ButtonLook {
  /** Default: plain. One primary button per screen, the safe one. Danger is for the button inside a dialog. */
  readonly kind?: 'primary' | 'danger' | 'ghost'
  readonly size?: 'small'
  readonly isIcon?: boolean
}

export interface ButtonProps
  extends ButtonLook,
    Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'type' | 'className' | 'disabled'> {
  readonly children: ReactNode
  /** Why the button is disabled. It stays focusable, so that a keyboard and a screen reader reach the reason. */
  readonly disabledReason?: string | undefined
  readonly type?: 'button' | 'submit'
  readonly ref?: Ref<HTMLButtonElement>
  /** Where the focus of a dialog starts. */
  readonly 'data-first'?: ''
}

export function Button(props: ButtonProps) {
  const { kind, size, isIcon, disabledReason, type = 'button', onClick, children, ...rest } = props
  const isDisabled = disabledReason !== undefined
  return (
    <button
      {...rest}
      {...lookOf({ kind, size, isIcon })}
      type={type}
      {...(isDisabled ? { 'aria-disabled': true, title: disabledReason } : {})}
      onClick={(event) => {
        if (isDisabled) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {children}
      {isDisabled ? <span className="visually-hidden">. {disabledReason}</span> : null}
    </button>
  )
}

interface Look {
  readonly kind?: ButtonLook['kind'] | undefined
  readonly size?: ButtonLook['size'] | undefined
  readonly isIcon?: boolean | undefined
}

/** Returns the attributes that make a link look like a button. */
export const lookOf = ({ kind, size, isIcon }: Look) => ({
  className: 'button',
  'data-kind': kind,
  'data-size': size,
  'data-icon': isIcon === true ? '' : undefined,
})
