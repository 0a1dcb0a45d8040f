import type { Inbox, InboxAnswer, InboxEntry } from '@redrive/runtime'

/** The transaction of a `memoryInbox`, as a handler sees it in `context.tx`. */
export interface MemoryTransaction {
  /** Runs the effect when the work has succeeded, together with recording the key; never when it failed. */
  onCommit(effect: () => void): void
}

/** An inbox in memory, for tests of handlers whose effects must happen once. */
export interface MemoryInbox extends Inbox<MemoryTransaction> {
  /** Keys handled or replaced, for all consumers together. */
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

  /** Before anything is awaited, so that no two are at work on the same key. */
  function before({ consumer, key, fingerprint, replaces }: InboxEntry): InboxAnswer {
    const known = handled.get(nameOf(consumer, key))
    const isConflict = known !== undefined && known !== REPLACED && known !== fingerprint
    if (isConflict) return 'conflict'
    const isReplaced = replaces !== undefined && handled.has(nameOf(consumer, replaces))
    return known !== undefined || isReplaced ? 'already_handled' : 'handled'
  }

  async function handle(entry: InboxEntry, work: Work): Promise<InboxAnswer> {
    const names = namesOf(entry)
    for (let other = first(names); other !== undefined; other = first(names)) await other
    const answer = before(entry)
    if (answer !== 'handled') return answer
    const effects: (() => void)[] = []
    const done = work({ onCommit: (effect) => void effects.push(effect) })
    // The one that waits asks only whether this is over, not how it ended.
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

/** In place of a fingerprint, which it cannot be: this key takes no effect any more, whatever its content. */
const REPLACED = 'replaced'

const namesOf = ({ consumer, key, replaces }: InboxEntry): readonly string[] =>
  [key, ...(replaces === undefined ? [] : [replaces])].map((one) => nameOf(consumer, one))
const nameOf = (consumer: string, key: string) => JSON.stringify([consumer, key])
const ignore = () => undefined
