import { business, type Rule } from '@redrive/core'
import { type Consumer, onEvent, type RedriveEvent } from '@redrive/runtime'
import type { Answer, Request } from './consumer-options.ts'
import { ComeBackLater, Refusal } from './handler.ts'
import type { HistoryWriter } from '../evidence/history.ts'
import { watchStandstills } from '../evidence/stalls.ts'

/** Classification of the handler's errors. */
export const RULES: readonly Rule[] = [business(Refusal), { class: 'unknown', when: ComeBackLater }]

/** Kills this process with SIGKILL at an exact point. */
export function dieAt(history: HistoryWriter, where: string): never {
  history.write({ what: 'dies', where })
  process.kill(process.pid, 'SIGKILL')
  throw new Error('unreachable')
}

/** Records what the checker counts and what an operator would see. */
function noteEvent(event: RedriveEvent, history: HistoryWriter): void {
  const { type } = event
  if (type === 'enacted') {
    if (event.enactment.kind === 'done') return
    history.write({
      what: 'event',
      type: event.enactment.kind,
      id: event.deliveryId,
      note: event.decision.kind,
    })
    return
  }
  if (type === 'attempt_failed' || type === 'inline_retry') return
  history.write({ what: 'event', type, ...about(event) })
}

function about(event: RedriveEvent): { readonly id?: string; readonly note?: string } {
  if ('error' in event) return { note: String(event.error) }
  if ('reason' in event) return { note: String(event.reason) }
  return {}
}

const MEASURE_MS = 500

export interface Life {
  readonly history: HistoryWriter
  readonly start: () => Promise<readonly Consumer[]>
  /** Called every half second for additional measurements. */
  readonly measure?: () => void
  /** Called after the consumers have stopped. */
  readonly end: () => Promise<unknown>
}

/** Runs a consumer process from its start until the harness stops it or ends. */
export async function live({ history, start, measure, end }: Life): Promise<void> {
  onEvent((event) => noteEvent(event, history))
  const consumers = await start()
  history.write({ what: 'ready' })
  answer({ kind: 'ready' })
  // Watches until the process ends.
  watchStandstills((span) => history.write({ what: 'stood_still', ...span }))
  const measuring = setInterval(() => {
    history.write({ what: 'memory', bytes: process.memoryUsage.rss() })
    measure?.()
  }, MEASURE_MS)

  const stop = async () => {
    clearInterval(measuring)
    await Promise.all(consumers.map((consumer) => consumer.stop({ drain: '10s' })))
    measure?.()
    await end()
    process.exit(0)
  }
  process.on('message', (request: Request) => {
    if (request === 'stop') return void stop()
    const counts = consumers.map((consumer) => consumer.stats())
    answer({
      kind: 'stats',
      busy: counts.reduce((sum, one) => sum + one.running + one.waiting + one.settling, 0),
    })
  })
  // The harness has ended, so no other process would stop this one.
  process.on('disconnect', () => process.exit(1))
}

const answer = (what: Answer) => void process.send?.(what)
