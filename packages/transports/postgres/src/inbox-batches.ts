import type { Inbox, InboxAttempt, InboxEntry, InboxResult } from '@redrive/runtime'

type Handle<Tx> = Inbox<Tx>['handle']

interface BatchDeps<Tx> {
  /** Maximum number of messages in a transaction. */
  readonly size: number
  /** Maximum number of concurrent transactions. */
  readonly transactions: number
  /** Runs the work in a transaction, and closes its connection when the signal aborts. */
  readonly transaction: (work: (tx: Tx) => Promise<void>, attempt: InboxAttempt) => Promise<void>
  readonly keys: BatchKeys<Tx>
  readonly handleAlone: Handle<Tx>
}

/** The statements of a batch, in its transaction. */
export interface BatchKeys<Tx> {
  /** Prepares the transaction for at most this time, and returns the keys that the inbox already has. */
  begin(tx: Tx, entries: readonly InboxEntry[], timeoutMs: number): Promise<ReadonlySet<string>>
  /** Throws when a handler has ended the transaction. */
  check(tx: Tx): void
  /** Inserts the keys. Throws when one of them exists. */
  insert(tx: Tx, entries: readonly InboxEntry[]): Promise<void>
}

/** A message that waits for its transaction. */
interface WaitingMessage<Tx> {
  readonly entry: InboxEntry
  readonly work: (tx: Tx) => Promise<void>
  readonly attempt: InboxAttempt | undefined
  readonly resolve: (result: InboxResult | Promise<InboxResult>) => void
  readonly reject: (reason: unknown) => void
  /** True when it may not share a transaction. */
  isAlone: boolean
}

/**
 * Handles several messages in one transaction. A failure in it belongs to no message: a statement that failed also fails
 * the next ones. So all of them are rolled back, and each is handled again alone, which gives it its own result.
 *
 * The keys are inserted after the handlers. A handler that ends the transaction, although it must not, can therefore only
 * make effects happen twice: a key without the effects of its message would lose the message.
 */
export function batched<Tx>(deps: BatchDeps<Tx>): Handle<Tx> {
  const { size, transactions, transaction, keys, handleAlone } = deps
  const waiting: WaitingMessage<Tx>[] = []
  let running = 0
  let isStarting = false

  function start(): void {
    isStarting = false
    while (running < transactions) {
      const batch = takeBatch(waiting, size)
      const [first] = batch
      if (first === undefined) return
      running += 1
      const handling = batch.length === 1 ? handleOne(first) : handleTogether(batch)
      void handling.finally(() => {
        running -= 1
        start()
      })
    }
  }

  /** Resolves when the transaction has ended. A handler that does not end keeps the message, but no transaction. */
  async function handleOne({ entry, work, attempt, resolve }: WaitingMessage<Tx>): Promise<void> {
    const handling = handleAlone(entry, work, attempt)
    resolve(handling)
    const end = endOf(attempt === undefined ? [] : [attempt])
    await Promise.race([handling.then(ignore, ignore), end.ended])
    end.release()
  }

  async function handleTogether(batch: readonly WaitingMessage<Tx>[]): Promise<void> {
    const attempts = batch.flatMap(({ attempt }) => attempt ?? [])
    const timeoutMs = Math.ceil(
      Math.min(MAX_TIMEOUT_MS, ...attempts.map((one) => one.timeoutMs)) / 2,
    )
    const end = endOf(attempts, timeoutMs)
    const runs = new Map<WaitingMessage<Tx>, Promise<void>>()
    let isNew: readonly WaitingMessage<Tx>[] = []
    const handling = transaction(
      async (tx) => {
        const entries = batch.map(({ entry }) => entry)
        const known = await keys.begin(tx, entries, timeoutMs)
        isNew = batch.filter(({ entry }) => !known.has(entry.key))
        for (const one of isNew) {
          end.signal.throwIfAborted()
          const run = one.work(tx)
          runs.set(one, run.catch(ignore))
          await run
          keys.check(tx)
        }
        const newEntries = isNew.map(({ entry }) => entry)
        if (newEntries.length > 0) await keys.insert(tx, newEntries)
      },
      { signal: end.signal, timeoutMs },
    )
    try {
      // A handler that does not end must not hold the others.
      await Promise.race([handling, end.ended])
      end.signal.throwIfAborted()
      for (const one of isNew) one.resolve('handled')
      repeatAlone(batch.filter((one) => !isNew.includes(one)))
    } catch {
      // Not reported: each message gets its own error when it is handled alone.
      handling.catch(ignore)
      const isEnded = await endedOf(runs)
      repeatAlone(batch.filter((one) => !runs.has(one) || isEnded.has(one)))
      // No message runs twice at the same time: this one waits until its handler ends.
      for (const [one, run] of runs) if (!isEnded.has(one)) void run.then(() => repeatLater(one))
    } finally {
      end.release()
    }
  }

  function repeatAlone(messages: readonly WaitingMessage<Tx>[]): void {
    for (const one of messages) one.isAlone = true
    // First: their attempts began before those of the others.
    waiting.unshift(...messages)
  }

  function repeatLater(message: WaitingMessage<Tx>): void {
    repeatAlone([message])
    start()
  }

  return (entry, work, attempt) =>
    new Promise((resolve, reject) => {
      // An edited message inserts two keys, and either may exist. A message that failed before may fail again.
      const isAlone = entry.replaces !== undefined || attempt?.isRetry === true
      waiting.push({ entry, work, attempt, resolve, reject, isAlone })
      if (isStarting) return
      isStarting = true
      // Messages that a transport delivers together share a transaction.
      setImmediate(start)
    })
}

/** One day: attempts have at most 12 h, and a timer at most 24 days. */
const MAX_TIMEOUT_MS = 86_400_000

const ignore = (): void => undefined

interface End {
  /** Aborts when the first of the attempts ends, or after the timeout. */
  readonly signal: AbortSignal
  /** Resolves when the signal aborts. */
  readonly ended: Promise<void>
  /** Removes the timer and the listeners. */
  readonly release: () => void
}

function endOf(attempts: readonly InboxAttempt[], timeoutMs?: number): End {
  const controller = new AbortController()
  const { promise, resolve } = Promise.withResolvers<void>()
  const abort = () => {
    controller.abort(ENDED)
    resolve()
  }
  const timer = timeoutMs === undefined ? undefined : setTimeout(abort, timeoutMs)
  for (const { signal } of attempts) {
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
  }
  const release = () => {
    clearTimeout(timer)
    for (const { signal } of attempts) signal.removeEventListener('abort', abort)
  }
  return { signal: controller.signal, ended: promise, release }
}

/** Not reported: the messages are handled again alone. */
const ENDED = new Error('The time of the batch has ended.')

/** Returns the messages whose handler has ended. */
async function endedOf<T>(runs: ReadonlyMap<T, Promise<void>>): Promise<ReadonlySet<T>> {
  const ended = new Set<T>()
  for (const [one, run] of runs) void run.then(() => ended.add(one))
  // Promises that are settled by now run their callbacks before the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve))
  return ended
}

/**
 * Removes the first message and the messages that may share its transaction: of the same consumer, each key once. A
 * message whose attempt ended while it waited is rejected.
 */
function takeBatch<Tx>(waiting: WaitingMessage<Tx>[], size: number): readonly WaitingMessage<Tx>[] {
  const keys = new Set<string>()
  const batch: WaitingMessage<Tx>[] = []
  const rest: WaitingMessage<Tx>[] = []
  for (const one of waiting.splice(0)) {
    const { entry, attempt, isAlone, reject } = one
    const [first = one] = batch
    const fits =
      batch.length === 0 ||
      (!isAlone &&
        !first.isAlone &&
        entry.consumer === first.entry.consumer &&
        !keys.has(entry.key))
    if (attempt?.signal.aborted === true) reject(attempt.signal.reason)
    else if (fits && batch.length < size) {
      keys.add(entry.key)
      batch.push(one)
    } else rest.push(one)
  }
  waiting.push(...rest)
  return batch
}
