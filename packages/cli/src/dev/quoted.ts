/** Characters without a meaning in a shell. */
const PLAIN = /^[\w@%+=:,./-]+$/

/** Returns a text as one argument of a command that the user copies into a shell. */
export function quoted(text: string, platform: string = process.platform): string {
  if (PLAIN.test(text)) return text
  return platform === 'win32' ? `"${text}"` : `'${text.replaceAll("'", "'\\''")}'`
}

/** Returns the command that returns the messages of a queue to the broker. */
export const putBackCommandLine = (queue: string, configFile: string): string =>
  `redrive put-back ${quoted(queue)} --config ${quoted(configFile)}`
