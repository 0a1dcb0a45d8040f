import type { Inbox, InboxAttempt, InboxEntry, InboxResult } from '@redrive/runtime'

type Handle<Tx> = Inbox<Tx>['handle']

interface BatchDeps<Tx> {
  /** Maximum number of messages in a transaction. */
  readonly size: number
  /** Maximum number of concurrent transactions. */
  readonly transactions: number
  readonly transaction: (work: (tx: Tx) => Promise<void>, attempt?: InboxAttempt) => Promise<void>
  /** Inserts the keys and returns the new ones. */
  readonly enterAll: (
    tx: Tx,
    consumer: string,
    entries: readonly InboxEntry[],
  ) => Promise<ReadonlySet<string>>
  readonly handleAlone: Handle<Tx>
}

/** A message that waits for its transaction. */
interface WaitingMessage<Tx> {
  readonly entry: InboxEntry
  readonly work: (tx: Tx) => Promise<void>
  readonly attempt: InboxAttempt | undefined
  readonly resolve: (result: InboxResult | Promise<InboxResult>) => void
  /** True when it may not share a transaction: its key is not new, or its batch failed. */
  isAlone: boolean
}

/**
 * Handles several messages in one transaction. A failure in it belongs to no message: a statement that failed also fails
 * the next ones. So all of them are rolled back, and each is handled again alone, which gives it its own result.
 */
export function batched<Tx>(deps: BatchDeps<Tx>): Handle<Tx> {
  const { size, transactions, transaction, enterAll, handleAlone } = deps
  const waiting: WaitingMessage<Tx>[] = []
  let running = 0
  let isStarting = false

  function start(): void {
    isStarting = false
    while (waiting.length > 0 && running < transactions) {
      running += 1
      void handleBatch(takeBatch(waiting, size)).finally(() => {
        running -= 1
        start()
      })
    }
  }

  async function handleBatch(batch: readonly WaitingMessage<Tx>[]): Promise<void> {
    const [first] = batch
    if (first === undefined) return
    if (batch.length === 1) {
      const handling = handleAlone(first.entry, first.work, first.attempt)
      first.resolve(handling)
      return void (await handling.catch(ignore))
    }
    const attempt = attemptOf(batch)
    let entered: ReadonlySet<string> = new Set()
    const handling = transaction(async (tx) => {
      const entries = batch.map(({ entry }) => entry)
      entered = await enterAll(tx, first.entry.consumer, entries)
      for (const { entry, work } of batch) {
        attempt?.signal.throwIfAborted()
        if (entered.has(entry.key)) await work(tx)
      }
    }, attempt)
    try {
      // A handler that does not end must not hold the others.
      await Promise.race([handling, abortOf(attempt)])
      for (const one of batch) if (entered.has(one.entry.key)) one.resolve('handled')
      repeatAlone(batch.filter(({ entry }) => !entered.has(entry.key)))
    } catch {
      // Not reported: each message gets its own error when it is handled alone.
      repeatAlone(batch)
    }
  }

  function repeatAlone(messages: readonly WaitingMessage<Tx>[]): void {
    for (const one of messages) one.isAlone = true
    // First: their attempts began before those of the others.
    waiting.unshift(...messages)
  }

  return (entry, work, attempt) =>
    new Promise((resolve) => {
      // An edited message inserts two keys, and either may exist.
      const isAlone = entry.replaces !== undefined
      waiting.push({ entry, work, attempt, resolve, isAlone })
      if (isStarting) return
      isStarting = true
      // Messages that a transport delivers together share a transaction.
      setImmediate(start)
    })
}

/** Rejects when the attempt ends. */
const abortOf = (attempt: InboxAttempt | undefined): Promise<never> =>
  new Promise((_, reject) => {
    attempt?.signal.addEventListener('abort', () => reject(attempt.signal.reason as Error))
  })

const ignore = (): void => undefined

/** Removes the first message and those that may share its transaction: of the same consumer, each key once. */
function takeBatch<Tx>(waiting: WaitingMessage<Tx>[], size: number): readonly WaitingMessage<Tx>[] {
  const [first] = waiting
  if (first === undefined || first.isAlone) return waiting.splice(0, 1)
  const keys = new Set<string>()
  const batch: WaitingMessage<Tx>[] = []
  const rest: WaitingMessage<Tx>[] = []
  for (const one of waiting.splice(0)) {
    const { consumer, key } = one.entry
    const fits = !one.isAlone && consumer === first.entry.consumer && !keys.has(key)
    if (fits && batch.length < size) {
      keys.add(key)
      batch.push(one)
    } else rest.push(one)
  }
  waiting.push(...rest)
  return batch
}

/**
 * Returns the attempt of a batch. It ends with the first attempt in it, and after half of the timeout: the messages behind
 * a slow one still have time to be handled alone.
 */
function attemptOf<Tx>(batch: readonly WaitingMessage<Tx>[]): InboxAttempt | undefined {
  const attempts = batch.flatMap(({ attempt }) => attempt ?? [])
  if (attempts.length === 0) return undefined
  const timeoutMs = Math.min(...attempts.map((one) => one.timeoutMs))
  const timeout = AbortSignal.timeout(timeoutMs / 2)
  return { timeoutMs, signal: AbortSignal.any([timeout, ...attempts.map(({ signal }) => signal)]) }
}
