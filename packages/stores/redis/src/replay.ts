import { randomUUID } from 'node:crypto'
import { type Clock, parseStoredDeadLetter, type SendAgain } from '@redrive/runtime'
import type { ResolvedOptions } from './options.ts'
import { CLAIM, FINISH, RELEASE, RENEW } from './scripts.ts'
import type { Server } from './server.ts'

/** The result of one replay. A batch counts only failures of the sink, so they are separate from server failures. */
export type ReplayOutcome =
  | { readonly kind: 'sent' }
  /** It does not exist, or another process is sending it. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly error: unknown }

/** Sends dead letters under a claim, so that no two processes send the same one. */
export class Replayer {
  readonly #server: Server
  readonly #clock: Clock
  readonly #leaseMs: number

  constructor(server: Server, { clock, leaseMs }: ResolvedOptions) {
    this.#server = server
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  /** Rejects only when the server does. */
  async replay(id: string, send: SendAgain): Promise<ReplayOutcome> {
    const token = randomUUID()
    const claimed = await this.#server.runOnClaim(CLAIM, id, id, token, this.#leaseMs)
    if (claimed === null) return { kind: 'absent' }
    const [text, facts] = claimed as readonly [string, string]
    const stop = this.#renew(id, token)
    try {
      await send(parseStoredDeadLetter(text))
    } catch (error) {
      stop()
      await this.#release(id, token)
      return { kind: 'refused', error }
    }
    stop()
    await this.#server.runOnClaim(FINISH, id, id, token, facts)
    return { kind: 'sent' }
  }

  async #release(id: string, token: string): Promise<void> {
    try {
      await this.#server.runOnClaim(RELEASE, id, token)
    } catch {
      // The caller needs the error of the sink. The claim ends with its lease.
    }
  }

  /** Renews after a third of the lease: two renewals may fail before another process may start. */
  #renew(id: string, token: string): () => void {
    let isOver = false
    let cancel = (): void => undefined
    const wait = () => {
      if (!isOver) cancel = this.#clock.after(this.#leaseMs / 3, renew)
    }
    // A failed renewal is repaired by the next one. Nothing is lost if all fail.
    const renew = () => {
      this.#server.runOnClaim(RENEW, id, token, this.#leaseMs).then(wait, wait)
    }
    wait()
    return () => {
      isOver = true
      cancel()
    }
  }
}
