import { setTimeout as delay } from 'node:timers/promises'
import type { Output } from '@redrive/api'
import { isOver } from './run-view.ts'

type Run = Output<'watchReplay'>

/** 500 ms: smooth progress at the cost of two small queries per second. */
const POLL_MS = 500

/** Yields the run now and after every change, until it ends or the client disconnects. */
export async function* watch(
  first: Run,
  read: () => Promise<Run>,
  signal: AbortSignal,
): AsyncGenerator<Run, void, undefined> {
  let last = ''
  for (let run = first; !signal.aborted; run = await read()) {
    const text = JSON.stringify(run)
    if (text !== last) yield run
    last = text
    if (isOver(run) || !(await waitForNext(signal))) return
  }
}

/** Waits for the next poll. Returns false if the signal fired. */
async function waitForNext(signal: AbortSignal): Promise<boolean> {
  try {
    await delay(POLL_MS, undefined, { signal, ref: false })
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
