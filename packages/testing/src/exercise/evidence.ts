import { AssertionError } from 'node:assert/strict'
import type { Decision, Delivery } from '@redrive/core'
import type { Enactment, RedriveEvent } from '@redrive/runtime'
import { describeError } from './describe-error.ts'

/** 5 reports: the last ones before a failure show its cause. */
const MAX_REPORTS = 5

interface Report {
  readonly text: string
  times: number
}

/** Events and enactments of a scenario, kept to explain its failure. */
export class Evidence {
  readonly #reports: Report[] = []
  #lastEnactment: string | undefined

  /** Keeps the event if it concerns the transport. The runtime's own events explain nothing here. */
  add(event: RedriveEvent): void {
    if (event.type === 'enacted') this.addEnactment(event.decision, event.enactment)
    const text = reportOf(event)
    if (text !== undefined) this.#report(text)
  }

  addEnactment({ kind }: Decision, enactment: Enactment): void {
    this.#lastEnactment = `${kind} -> ${resultOf(enactment)}`
  }

  addThrown({ kind }: Decision, error: unknown): void {
    this.#lastEnactment = `${kind} -> threw: ${describeError(error)}`
  }

  addLost({ id }: Delivery): void {
    this.#report(`lost: ${id}`)
  }

  #report(text: string): void {
    const last = this.#reports.at(-1)
    if (last?.text === text) last.times += 1
    else this.#reports.push({ text, times: 1 })
    if (this.#reports.length > MAX_REPORTS) this.#reports.shift()
  }

  /** Returns the sentence that follows the failure's own message. */
  text(): string {
    const reports = this.#reports.map(({ text, times }) =>
      times > 1 ? `${text} (${times}x)` : text,
    )
    const reported = reports.length === 0 ? 'no event' : reports.join('; ')
    const enacted = this.#lastEnactment ?? 'none'
    return `The transport reported: ${reported}; last enactment: ${enacted}`
  }

  /** Returns the error with this evidence in its message. An assertion keeps its difference. */
  explain(error: unknown): Error {
    const message = `${messageOf(error)}. ${this.text()}`
    if (!(error instanceof AssertionError)) return new Error(message, { cause: error })
    const { stack = '', message: before } = error
    error.message = message
    error.stack = stack.replace(before, () => message)
    return error
  }
}

function messageOf(error: unknown): string {
  const text = error instanceof AssertionError ? error.message : describeError(error)
  return text.replace(/[.\s]+$/, '')
}

function resultOf(enactment: Enactment): string {
  if (enactment.kind === 'done') return `done: ${enactment.destination}`
  return enactment.kind === 'lost' ? 'lost' : `${enactment.kind}: ${describeError(enactment.error)}`
}

function reportOf(event: RedriveEvent): string | undefined {
  switch (event.type) {
    case 'connection_lost':
    case 'hand_off_stuck':
      return `${event.type}: ${describeError(event.error)}`
    case 'user_code_failed':
      return `${event.type} in ${event.where}: ${describeError(event.error)}`
    case 'broker_blocked':
      return `${event.type}: ${event.reason ?? 'ended'}`
    case 'messages_expired':
      return `${event.type}: ${event.count} in ${event.where}`
    case 'topic_missing':
      return `${event.type}: ${event.problem ?? `${event.where} exists again`}`
    case 'topic_recreated':
      return `${event.type}: ${event.where}`
    case 'headers_unreadable':
      return `${event.type}: ${event.problems.join(', ')}`
    case 'connection_restored':
      return event.type
    default:
      return undefined
  }
}
