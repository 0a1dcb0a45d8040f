import type { ReactNode } from 'react'
import './card.css'

export interface CardProps {
  readonly title?: string
  /** A short fact next to the title. */
  readonly note?: ReactNode
  /** A link or control at the end of the head. */
  readonly action?: ReactNode
  readonly footer?: ReactNode
  readonly children: ReactNode
  readonly className?: string
}

/** A titled section of a page. Without a title it has no head. */
export const Card = ({ title, note, action, footer, children, className = '' }: CardProps) => (
  <section className={`card ${className}`} aria-label={title}>
    {title === undefined ? null : (
      <header className="card-head">
        <h2>{title}</h2>
        {note === undefined ? null : <span className="card-note">{note}</span>}
        <span className="grow" />
        {action}
      </header>
    )}
    {children}
    {footer === undefined ? null : <footer className="card-foot">{footer}</footer>}
  </section>
)

export const CardBody = ({ children }: { readonly children: ReactNode }) => (
  <div className="card-body">{children}</div>
)

export interface Fact {
  readonly name: string
  readonly value: ReactNode
}

/** Names and values. A fact without a value is left out. */
export const Facts = ({ facts }: { readonly facts: readonly Fact[] }) => (
  <dl className="facts">
    {facts
      .filter(({ value }) => value !== undefined && value !== null)
      .map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)
