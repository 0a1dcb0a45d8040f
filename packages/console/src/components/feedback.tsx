import { ApiError } from '@redrive/api'
import { type ReactNode, useEffect, useState } from 'react'
import { Button } from './button.tsx'
import { Mark } from './icon.tsx'
import './feedback.css'

/** 300 ms: a faster answer needs no sign of loading, which would only flicker. */
const PATIENCE_MS = 300

const WIDTHS = ['62%', '48%', '71%', '55%', '66%', '44%']

export interface SkeletonProps {
  readonly rows?: number
  /** Shows the rows without a delay. For the page of components. */
  readonly isImmediate?: boolean
}

/** Rows that stand for data that is loading. Nothing for the first 300 ms, and no motion afterwards. */
export function Skeleton({ rows = 4, isImmediate = false }: SkeletonProps) {
  const [isShown, setShown] = useState(isImmediate)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), PATIENCE_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className="skeleton" role="status" data-shown={isShown ? '' : undefined}>
      <span className="visually-hidden">{isShown ? 'Loading…' : ''}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skeleton-row">
          <i style={{ width: 12 }} />
          <i style={{ width: WIDTHS[row % WIDTHS.length] }} />
          <i style={{ width: 80 }} />
          <i style={{ width: 36 }} />
        </div>
      ))}
    </div>
  )
}

export interface EmptyProps {
  readonly title: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}

/** No data, or no data that matches the filter. */
export const Empty = ({ title, children, action }: EmptyProps) => (
  <div className="empty">
    <b>{title}</b>
    {children === undefined ? null : <div className="quiet small">{children}</div>}
    {action}
  </div>
)

export interface LoadErrorProps {
  /** What could not be loaded: groups. */
  readonly what: string
  readonly error: unknown
  readonly onRetry?: () => void
}

/** A failed request: what failed, why, and the id of the request in the server log. */
export function LoadError({ what, error, onRetry }: LoadErrorProps) {
  const { detail, code, requestId } = problemOf(error)
  const text = [`Cannot load ${what}.`, detail, code, requestId].filter((one) => one !== '')
  return (
    <div className="empty" role="alert">
      <span className="row empty-error">
        <Mark shape="fail" tone="bad" />
        <b>Cannot load {what}.</b>
      </span>
      <p className="quiet small">
        {detail} {code === '' ? null : <code>{code}</code>}
        {requestId === '' ? null : <>, request {requestId.slice(0, 8)}</>}
      </p>
      <div className="row">
        {onRetry === undefined ? null : (
          <Button size="small" onClick={onRetry}>
            Retry
          </Button>
        )}
        <Button
          size="small"
          kind="ghost"
          onClick={() => void navigator.clipboard.writeText(text.join('\n'))}
        >
          Copy details
        </Button>
      </div>
    </div>
  )
}

/** Returns the facts of an error. A request that got no response is not an `ApiError`. */
export function problemOf(error: unknown): {
  readonly detail: string
  readonly code: string
  readonly requestId: string
} {
  if (error instanceof ApiError) return error.problem
  return { detail: 'The server did not respond.', code: '', requestId: '' }
}
