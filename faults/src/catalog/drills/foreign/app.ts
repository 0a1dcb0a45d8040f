/** An application without any Redrive code: it consumes, fails, and puts what failed aside in its own way. */
export interface App {
  /** Where it puts what failed. */
  readonly deadLetters: string
  /** Sends so many messages, which all fail; resolves when they are aside. */
  fail(count: number): Promise<void>
  /** From now on it handles what comes, but for these, which fail once more. */
  fix(again: ReadonlySet<number>): Promise<void>
  /** How many it has handled. */
  readonly handled: number
  /** What it got back and was not as it had been sent, and what came more than once; one sentence each. */
  readonly wrong: readonly string[]
  /** How those of the first failure belong together: a label for each message. */
  readonly labels: readonly string[]
  /** What the catalog must say about those that failed again. */
  readonly secondReason: string
  end(): Promise<void>
}

const INDEX_BYTES = 4

/** Not text in any encoding, with its number in front. */
export function bodyOf(index: number): Buffer {
  const body = Buffer.alloc(INDEX_BYTES + 60 + (index % 400), index % 256)
  body.writeUInt32BE(index)
  for (let at = INDEX_BYTES; at < body.length; at += 3) body[at] = (index * 31 + at * 7) % 256
  return body
}

export const indexOf = (body: Buffer): number => body.readUInt32BE()

/** Written by the control plane, for itself. */
export const isRedrive = (name: string): boolean => name.startsWith('redrive-')
