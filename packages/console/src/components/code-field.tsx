import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import type { CodeArea, openCodeArea, TextRange } from '../editor/code-area.ts'
import './code-field.css'

export interface CodeFieldProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  /** Whether the text is JSON: with colours and marked errors. */
  readonly isJson: boolean
  readonly isInvalid?: boolean
  /** Read by screen readers after the name. */
  readonly description: string
  readonly hint?: string
  /** Whether it has the height of a whole body. */
  readonly isTall?: boolean
}

interface LoadedEditor {
  readonly open: typeof openCodeArea
  /** What the user had selected in the text area. Undefined: the focus was somewhere else. */
  readonly selected: TextRange | undefined
}

/**
 * A field for JSON and other long text. It is a text area until the editor has been loaded. If the editor cannot be loaded,
 * for example after an upgrade of the server, it stays a text area.
 */
export function CodeField(props: CodeFieldProps) {
  const { label, value, onChange, isJson, isInvalid = false, description, hint, isTall } = props
  const frame = useRef<HTMLDivElement>(null)
  const plain = useRef<HTMLTextAreaElement>(null)
  const area = useRef<CodeArea>(undefined)
  const [loaded, setLoaded] = useState<LoadedEditor>()
  const latest = useRef({ value, onChange })
  useLayoutEffect(() => {
    latest.current = { value, onChange }
  })
  useEffect(() => {
    let isMounted = true
    const start = ({ openCodeArea: open }: { openCodeArea: typeof openCodeArea }) => {
      const field = plain.current
      const selected =
        field !== null && document.activeElement === field
          ? { from: field.selectionStart, to: field.selectionEnd }
          : undefined
      // At once: what the user selects or types before a later change would be lost.
      if (isMounted) flushSync(() => setLoaded({ open, selected }))
    }
    import('../editor/code-area.ts').then(start, () => undefined)
    return () => {
      isMounted = false
    }
  }, [])
  useLayoutEffect(() => {
    if (loaded === undefined || frame.current === null) return undefined
    const { value: text } = latest.current
    const opened = loaded.open(frame.current, {
      ...{ text, label, hint, isJson },
      onChange: (next) => latest.current.onChange(next),
    })
    area.current = opened
    if (loaded.selected !== undefined) opened.focus(loaded.selected)
    return () => {
      area.current = undefined
      opened.close()
    }
  }, [loaded, label, hint, isJson])
  useLayoutEffect(() => {
    area.current?.update({ text: value, isInvalid, description })
  }, [loaded, label, hint, isJson, value, isInvalid, description])
  return (
    <div ref={frame} className="code-field" data-tall={isTall === true ? '' : undefined}>
      {loaded === undefined ? (
        <textarea
          ref={plain}
          className="input code-field-plain"
          aria-label={label}
          aria-description={description}
          aria-invalid={isInvalid ? true : undefined}
          placeholder={hint}
          spellCheck={false}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      ) : null}
    </div>
  )
}
