import { ApiError } from '@redrive/api'
import { useState } from 'react'
import { problemOf } from '../components/feedback.tsx'
import { toast } from '../components/toast.tsx'

/**
 * Runs the change of a dialog. `work` gets the idempotency key and returns the text of the toast. The key stays the same
 * until the server has refused the change, so that a change whose response was lost is applied once.
 */
export function useChange(onDone: () => void, textOf: (error: unknown) => string = textOfError) {
  const [key, setKey] = useState(() => crypto.randomUUID())
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const run = (work: (key: string) => Promise<string>) => {
    setBusy(true)
    setProblem(undefined)
    work(key)
      .then((text) => {
        toast({ text, tone: 'good' })
        onDone()
      })
      .catch((error: unknown) => {
        if (isRefusal(error)) setKey(crypto.randomUUID())
        setProblem(textOf(error))
      })
      .finally(() => setBusy(false))
  }
  return { run, isBusy, problem }
}

/** Returns whether the server did not apply the change. The corrected change is another one. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError && error.problem.status < 500 && error.code !== 'in_progress'

const textOfError = (error: unknown) =>
  error instanceof ApiError && error.code === 'precondition_failed'
    ? 'Another user changed it after you opened it. Close this dialog and look again.'
    : problemOf(error).detail
