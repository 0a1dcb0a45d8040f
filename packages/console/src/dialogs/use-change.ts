import { ApiError } from '@redrive/api'
import { useState } from 'react'
import { problemOf } from '../components/feedback.tsx'
import { toast } from '../components/toast.tsx'

/** Runs the change of a dialog once: a repeated click sends the same key. `run` gets a text for the toast from its work. */
export function useChange(onDone: () => void) {
  const [key] = useState(() => crypto.randomUUID())
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
      .catch((error: unknown) => setProblem(textOfError(error)))
      .finally(() => setBusy(false))
  }
  return { run, isBusy, problem }
}

const textOfError = (error: unknown) =>
  error instanceof ApiError && error.code === 'precondition_failed'
    ? 'Another user changed it after you opened it. Close this dialog and look again.'
    : problemOf(error).detail
