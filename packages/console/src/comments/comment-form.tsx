import { useRef, useState } from 'react'
import { Button } from '../components/button.tsx'
import { problemOf } from '../components/feedback.tsx'
import { toast } from '../components/toast.tsx'
import { useKeys } from '../keys.ts'
import './comment-form.css'

export interface CommentFormProps {
  readonly onSave: (text: string, key: string) => Promise<void>
}

/** A field for a comment. The key `c` focuses it. */
export function CommentForm({ onSave }: CommentFormProps) {
  const [text, setText] = useState('')
  const [key, setKey] = useState(() => crypto.randomUUID())
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  useKeys({ c: () => field.current?.focus() })
  const save = () => {
    setBusy(true)
    onSave(text.trim(), key)
      .then(() => {
        setText('')
        setKey(crypto.randomUUID())
      })
      // The text stays in the field, so that nothing is lost.
      .catch((error: unknown) => toast({ text: problemOf(error).detail, tone: 'bad' }))
      .finally(() => setBusy(false))
  }
  return (
    <form
      className="comment"
      onSubmit={(event) => {
        event.preventDefault()
        if (text.trim() !== '' && !isBusy) save()
      }}
    >
      <textarea
        ref={field}
        className="input"
        aria-label="Comment"
        placeholder="Comment"
        rows={text === '' ? 1 : 3}
        maxLength={10_000}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {text.trim() === '' ? null : (
        <Button
          type="submit"
          size="small"
          disabledReason={isBusy ? 'The comment is being saved.' : undefined}
        >
          Comment
        </Button>
      )}
    </form>
  )
}
