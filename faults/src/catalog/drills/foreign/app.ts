/**
 * An application without Redrive code. It consumes, fails, and stores failed messages in its own
 * way.
 */
export interface App {
  /** Queue or topic of its failed messages. */
  readonly deadLetters: string
  /** Sends `count` messages that all fail; resolves when they are dead-lettered. */
  fail(count: number): Promise<void>
  /** Makes the application handle messages from now on, except these, which fail once more. */
  fix(again: ReadonlySet<number>): Promise<void>
  /** Number of handled messages. */
  readonly handled: number
  /** One sentence for each message that came back changed or more than once. */
  readonly wrong: readonly string[]
  /** A label for each message: messages with the same label failed for the same reason first. */
  readonly labels: readonly string[]
  /** The reason that the catalog must show for messages that failed again. */
  readonly secondReason: string
  end(): Promise<void>
}

const INDEX_BYTES = 4

/** Returns a body that is not text in any encoding; its number is at the start. */
export function bodyOf(index: number): Buffer {
  const body = Buffer.alloc(INDEX_BYTES + 60 + (index % 400), index % 256)
  body.writeUInt32BE(index)
  for (let at = INDEX_BYTES; at < body.length; at += 3) body[at] = (index * 31 + at * 7) % 256
  return body
}

export const indexOf = (body: Buffer): number => body.readUInt32BE()

/** Returns whether the control plane wrote this header. */
export const isRedrive = (name: string): boolean => name.startsWith('redrive-')
