import type { Inbox, InboxAnswer, InboxEntry } from '@redrive/runtime'

/** The transaction of a `memoryInbox`, as a handler sees it in `context.tx`. */
export interface MemoryTransaction {
  /** Runs the effect when the work has succeeded, together with recording the key; never when it failed. */
  onCommit(effect: () => void): void
}

/** An inbox in memory, for tests of handlers whose effects must happen once. */
export interface MemoryInbox extends Inbox<MemoryTransaction> {
  /** Keys handled, for all consumers together. */
  readonly count: number
  has(consumer: string, key: string): boolean
}

/**
 * An inbox that forgets with the process. As with a real one, work that throws leaves no trace, and
 * two deliveries of the same key wait for each other.
 */
export function memoryInbox(): MemoryInbox {
  const handled = new Map<string, string>()
  const working = new Map<string, Promise<void>>()

  async function handle(entry: InboxEntry, work: Work): Promise<InboxAnswer> {
    const name = nameOf(entry.consumer, entry.key)
    for (let other = working.get(name); other !== undefined; other = working.get(name)) await other
    const known = handled.get(name)
    if (known !== undefined) return known === entry.fingerprint ? 'already_handled' : 'conflict'
    const effects: (() => void)[] = []
    const done = work({ onCommit: (effect) => void effects.push(effect) })
    // The one that waits asks only whether this is over, not how it ended.
    const over = done.then(ignore, ignore).then(() => void working.delete(name))
    working.set(name, over)
    await done
    handled.set(name, entry.fingerprint)
    for (const effect of effects) effect()
    return 'handled'
  }

  return {
    handle,
    has: (consumer, key) => handled.has(nameOf(consumer, key)),
    get count() {
      return handled.size
    },
  }
}

type Work = (tx: MemoryTransaction) => Promise<void>

const nameOf = (consumer: string, key: string) => JSON.stringify([consumer, key])
const ignore = () => undefined
