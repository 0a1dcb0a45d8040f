import { useState } from 'react'
import { Icon } from './icon.tsx'
import './command.css'

/** 2 s: long enough to read, and short enough that the next copy is noticed. */
const COPIED_MS = 2_000

/** A command or address to copy. */
export function Command({
  text,
  label = 'Copy',
}: {
  readonly text: string
  readonly label?: string
}) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), COPIED_MS)
  }
  return (
    <div className="command">
      <code className="cut" title={text}>
        {text}
      </code>
      <button type="button" aria-label={`${label}: ${text}`} onClick={() => void copy()}>
        <Icon name={isCopied ? 'check' : 'copy'} />
      </button>
      <span className="visually-hidden" role="status">
        {isCopied ? 'Copied' : ''}
      </span>
    </div>
  )
}

/** An action of the console, as the command line and the API do it. */
export interface Equivalent {
  readonly cli: string
  readonly api: string
}

/** The commands of an action. Both are visible, because readers use one or the other. */
export const Equivalents = ({ cli, api }: Equivalent) => (
  <div className="stack" data-gap="tight">
    <Command text={cli} label="Copy the command" />
    <Command text={api} label="Copy the API request" />
  </div>
)
