import { setTimeout as delay } from 'node:timers/promises'
import type { Answer } from '@redrive/api'
import { isOver } from './run.ts'

type Run = Answer<'watchReplay'>

/** 500 ms: a bar that moves, for two small questions a second. */
const EVERY_MS = 500

/** The run now, and again whenever it is another, until it is over or nobody looks any more. */
export async function* watch(
  first: Run,
  read: () => Promise<Run>,
  signal: AbortSignal,
): AsyncGenerator<Run, void, undefined> {
  let told = ''
  for (let run = first; !signal.aborted; run = await read()) {
    const text = JSON.stringify(run)
    if (text !== told) yield run
    told = text
    if (isOver(run) || !(await waited(signal))) return
  }
}

/** False: it was ended before. */
async function waited(signal: AbortSignal): Promise<boolean> {
  try {
    await delay(EVERY_MS, undefined, { signal, ref: false })
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
