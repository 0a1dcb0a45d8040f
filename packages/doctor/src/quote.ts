/**
 * Names come from brokers, and whoever may make a queue chooses them. What a fix tells people to run has
 * them in quotes, so that a name stays a name.
 */

/** Signs that mean nothing to any shell. */
const PLAIN = /^[A-Za-z0-9_./:@%+=,-]+$/

/** One word of a command. */
export const shell = (text: string): string =>
  PLAIN.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

/** With a backslash in it the server must be told that it is escaped, whatever it is set to. */
const literal = (text: string): string => {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? `E${quoted.replaceAll('\\', String.raw`\\`)}` : quoted
}

const identifier = (text: string): string =>
  /^[a-z_][a-z0-9_]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`

/** Only the name of the table may have dots in it: the schemas are ours. */
function table(text: string): string {
  const [schema = '', ...name] = text.split('.')
  return [schema, name.join('.')].map(identifier).join('.')
}

/** How a fix writes what it is filled with: `{name}` for a shell, `{name:kind}` for others. */
export const QUOTES: Readonly<Record<string, (text: string) => string>> = {
  literal,
  identifier,
  table,
  js: (text) => JSON.stringify(text),
  /** Our own words, or what is quoted already. */
  text: (text) => text,
}

/** `{name}` or `{name:kind}`. Braces with anything else in them are JSON in a command, and stay. */
export const FILLS: RegExp = /\{([a-z][A-Za-z]*)(?::([a-z]+))?\}/g
