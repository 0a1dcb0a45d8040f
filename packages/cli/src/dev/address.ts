import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'
import { filledAddress, PLACEHOLDER } from '../server/address.ts'

/** An address of an option. */
export interface Address {
  /** The address for connections. */
  readonly url: string
  /** The address for the config: with the placeholders, so that their values are in no file. */
  readonly text: string
}

/** Replaces the placeholders of an address. The config of the server must have the same meaning. */
export async function addressOf(io: Io, option: string, text: string): Promise<Address> {
  const url = await filledAddress(io, text)
  // In the config, this would begin a placeholder.
  if (url === text) return { url, text: text.replaceAll('${', () => '$${') }
  const { lookUp } = await import('@redrive/server/light')
  const inConfig = text.replaceAll(PLACEHOLDER, (whole, name: string) => {
    const found = lookUp(name, io)
    return 'value' in found ? found.value : whole
  })
  if (isSame(url, inConfig)) return { url, text }
  throw new CommandError(
    EXIT.usage,
    `${option}: the value of a placeholder has characters with a meaning in an address, such as "/" or "@". Set a variable to the whole address, with these characters percent-encoded, and pass it in single quotes: ${option} '\${NAME}'`,
  )
}

/** The parts of an address that a value can change. */
const PARTS = ['protocol', 'username', 'password', 'host', 'pathname', 'search', 'hash'] as const

/** Returns whether two addresses have the same parts. One of them may encode more characters. */
function isSame(one: string, other: string): boolean {
  if (one === other) return true
  if (!URL.canParse(one) || !URL.canParse(other)) return false
  const [a, b] = [new URL(one), new URL(other)]
  return PARTS.every((part) => decoded(a[part]) === decoded(b[part]))
}

/** Returns the decoded text, or undefined if it is not valid. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // A value has a "%" without a code. The caller reports it.
    return undefined
  }
}
