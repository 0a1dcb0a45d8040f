import type { Inbox, InboxResult, InboxEntry } from '@redrive/runtime'

/** The transaction of a `memoryInbox`, which a handler gets as `context.tx`. */
export interface MemoryTransaction {
  /** Runs the effect when the work has succeeded, together with recording the key. Never runs it after a failure. */
  onCommit(effect: () => void): void
}

/** An inbox in memory, for tests of handlers whose effects must happen once. */
export interface MemoryInbox extends Inbox<MemoryTransaction> {
  /** Number of keys handled or replaced, for all consumers together. */
  readonly count: number
  has(consumer: string, key: string): boolean
}

/**
 * Creates an inbox in memory. As in a real one, work that throws leaves no trace, and two deliveries of
 * the same key wait for each other.
 */
export function memoryInbox(): MemoryInbox {
  const handled = new Map<string, string>()
  const working = new Map<string, Promise<void>>()

  /** Checks before anything is awaited, so that two deliveries of one key never run together. */
  function before({ consumer, key, fingerprint, replaces }: InboxEntry): InboxResult {
    const known = handled.get(nameOf(consumer, key))
    const isConflict = known !== undefined && known !== REPLACED && known !== fingerprint
    if (isConflict) return 'conflict'
    const isReplaced = replaces !== undefined && handled.has(nameOf(consumer, replaces))
    return known !== undefined || isReplaced ? 'already_handled' : 'handled'
  }

  async function handle(entry: InboxEntry, work: Work): Promise<InboxResult> {
    const names = namesOf(entry)
    for (let other = first(names); other !== undefined; other = first(names)) await other
    const result = before(entry)
    if (result !== 'handled') return result
    const effects: (() => void)[] = []
    const done = work({ onCommit: (effect) => void effects.push(effect) })
    // A waiting delivery needs only the end of this one, not its result.
    const over = done.then(ignore, ignore).then(() => {
      for (const name of names) working.delete(name)
    })
    for (const name of names) working.set(name, over)
    await done
    for (const name of names) handled.set(name, REPLACED)
    handled.set(nameOf(entry.consumer, entry.key), entry.fingerprint)
    for (const effect of effects) effect()
    return 'handled'
  }

  const first = (names: readonly string[]) =>
    names.map((name) => working.get(name)).find((other) => other !== undefined)

  return {
    handle,
    has: (consumer, key) => handled.has(nameOf(consumer, key)),
    get count() {
      return handled.size
    },
  }
}

type Work = (tx: MemoryTransaction) => Promise<void>

/** A marker instead of a fingerprint: this key takes no effect any more, whatever its content. */
const REPLACED = 'replaced'

const namesOf = ({ consumer, key, replaces }: InboxEntry): readonly string[] =>
  [key, ...(replaces === undefined ? [] : [replaces])].map((one) => nameOf(consumer, one))
const nameOf = (consumer: string, key: string) => JSON.stringify([consumer, key])
const ignore = () => undefined
