import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'
import { say } from '../print.ts'

const PLACEHOLDER = /\$\{([A-Za-z_]\w*)\}/g
const WHOLE = /^\$\{\w+\}$/

/**
 * Returns the address of a broker with its placeholders replaced, as in the config of the server: `${NAME}` is a
 * variable of the environment, or the content of the file in `NAME_FILE`. Other users of the machine can see a
 * password in an argument, so it prints a warning then, except for a broker on this machine.
 */
export function filledAddress(io: Io, address: string): string {
  // A part of an address, such as a password, may contain characters with a meaning there.
  const encode = WHOLE.test(address) ? (value: string) => value : encodeURIComponent
  const filled = address.replaceAll(PLACEHOLDER, (_, name: string) => encode(valueOf(io, name)))
  if (filled === address && hasPassword(address)) {
    say(
      io,
    )`Warning: other users of this machine can see the password in the list of processes. Set a variable and write $\{NAME} instead of the password, in single quotes.`
  }
  return filled
}

function valueOf({ env, cwd }: Io, name: string): string {
  const value = env[name]
  if (value !== undefined && value !== '') return value
  const file = env[`${name}_FILE`]
  if (file === undefined || file === '')
    throw new CommandError(
      EXIT.usage,
      `The variable ${name} of the address is not set. Set it, or set ${name}_FILE to the path of a file with the value.`,
    )
  try {
    return readFileSync(resolve(cwd, file), 'utf8').trimEnd()
  } catch (cause) {
    throw new CommandError(EXIT.usage, `Cannot read the file in ${name}_FILE: ${file}.`, { cause })
  }
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

function hasPassword(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { password, hostname } = new URL(address)
  return password !== '' && !LOOPBACK.test(hostname)
}
