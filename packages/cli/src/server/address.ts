import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'
import { say } from '../print.ts'

export const PLACEHOLDER: RegExp = /\$\{([A-Za-z_]\w*)\}/g
const WHOLE = /^\$\{\w+\}$/

/**
 * Returns the address of a broker with its placeholders replaced, as in the config of the server: `${NAME}` is a
 * variable of the environment, or the content of the file in `NAME_FILE`. Other users of the machine can see a
 * password in an argument, so it prints a warning then, except for a broker on this machine.
 */
export async function filledAddress(io: Io, address: string): Promise<string> {
  if (address.search(PLACEHOLDER) < 0) {
    if (hasPassword(address)) {
      say(
        io,
      )`Warning: other users of this machine can see the password in the list of processes. Set a variable and write $\{NAME} instead of the password, in single quotes.`
    }
    return address
  }
  const { lookUp, notSet } = await import('@redrive/server/light')
  // A part of an address, such as a password, may contain characters with a meaning there.
  const encode = WHOLE.test(address) ? (value: string) => value : encodeURIComponent
  return address.replaceAll(PLACEHOLDER, (_, name: string) => {
    const found = lookUp(name, io)
    if ('value' in found) return encode(found.value)
    throw new CommandError(EXIT.usage, `The address: ${found.problem ?? notSet(name)}`)
  })
}

/** Host names of this machine, as in a URL. */
export const LOOPBACK: RegExp = /^(localhost|127(\.\d+){3}|\[::1\])$/

function hasPassword(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { password, hostname } = new URL(address)
  return password !== '' && !LOOPBACK.test(hostname)
}
