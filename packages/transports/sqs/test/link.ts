import { setTimeout as pause } from 'node:timers/promises'
import type { TransportFault } from '@redrive/testing'
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import type { SqsClient } from '../src/index.ts'

interface RequestOptions {
  readonly abortSignal?: AbortSignal
}

/** The client of one transport, with the faults of the contract. */
export class Link {
  readonly #real: SQSClient
  readonly #url: string
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  readonly #running = new Set<Promise<unknown>>()
  /** Receipt handles of messages in flight. */
  readonly #open = new Set<string>()
  /** Handles whose deletions and renewals are lost. */
  #cut: ReadonlySet<string> = new Set()
  #isAlive = true
  #isResponseDropped = false
  readonly client: SqsClient

  constructor(
    real: SQSClient,
    url: string,
    fault: TransportFault | undefined,
    isRefusing: () => boolean,
  ) {
    this.#real = real
    this.#url = url
    this.#fault = fault
    this.#isRefusing = isRefusing
    const send = (command: unknown, options: RequestOptions) => this.#send(command, options)
    this.client = { send: send as SqsClient['send'] }
  }

  /** Ends the process like `kill -9`. SQS notices it when the leases end; they are ended here to save time. */
  async die(): Promise<void> {
    this.#isAlive = false
    // SQS has received the requests in flight.
    await Promise.allSettled(this.#running)
    for (const handle of this.#open) await this.#end(handle)
    this.#open.clear()
  }

  /** Loses the deletions and renewals of all messages in flight, until their leases have ended. */
  async loseLeases(leaseMs: number): Promise<void> {
    this.#cut = new Set(this.#open)
    await pause(leaseMs + MARGIN_MS)
    for (const handle of this.#cut) this.#open.delete(handle)
  }

  dropResponse(): void {
    this.#isResponseDropped = true
  }

  async #end(handle: string): Promise<void> {
    const Entries = [{ Id: '0', ReceiptHandle: handle, VisibilityTimeout: 0 }]
    await this.#real.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#url, Entries }))
  }

  async #send(command: unknown, options: RequestOptions): Promise<unknown> {
    if (!this.#isAlive) return refusing(options)
    const isCopy = command instanceof SendMessageBatchCommand
    if (isCopy && this.#fault === 'copies_refused' && this.#isRefusing())
      throw new Error('socket hang up')
    if (this.#isCut(command)) throw new Error('socket hang up')
    const running = this.#real.send(command as ReceiveMessageCommand, options)
    this.#running.add(running)
    const response = await running.finally(() => this.#running.delete(running))
    if (command instanceof ReceiveMessageCommand) {
      for (const { ReceiptHandle = '' } of response.Messages ?? []) this.#open.add(ReceiptHandle)
    }
    if (command instanceof DeleteMessageBatchCommand) {
      for (const { ReceiptHandle = '' } of command.input.Entries ?? [])
        this.#open.delete(ReceiptHandle)
    }
    const isHandOff = isCopy || command instanceof DeleteMessageBatchCommand
    if (isHandOff && this.#fault === 'dies_halfway') await this.die()
    if (!this.#isAlive) return refusing(options)
    if (isCopy && this.#isResponseDropped) {
      this.#isResponseDropped = false
      throw new Error('socket hang up')
    }
    return response
  }

  #isCut(command: unknown): boolean {
    const isOfOne =
      command instanceof DeleteMessageBatchCommand ||
      command instanceof ChangeMessageVisibilityBatchCommand
    if (!isOfOne) return false
    return (command.input.Entries ?? []).some(({ ReceiptHandle = '' }) =>
      this.#cut.has(ReceiptHandle),
    )
  }
}

/** 300 ms: the server checks leases a little later. */
const MARGIN_MS = 300

/** A process that has crashed gets no response. */
const refusing = ({ abortSignal }: RequestOptions) =>
  new Promise<never>((_, reject) => {
    abortSignal?.addEventListener('abort', () => reject(abortSignal.reason as Error))
  })
