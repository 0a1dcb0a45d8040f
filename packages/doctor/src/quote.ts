/**
 * Quotes names in the commands of a fix. Names come from brokers, and every user who may create a queue chooses
 * them. Without quotes, a name could contain a command.
 */

/** Characters without a special meaning in any shell. */
const SAFE_CHARACTERS = /^[A-Za-z0-9_./:@%+=,-]+$/

/** Quotes one word of a command. */
export const shell = (text: string): string =>
  SAFE_CHARACTERS.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Quotes an SQL literal. A text with a backslash uses the `E''` syntax, which does not depend on server settings. */
const literal = (text: string): string => {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? `E${quoted.replaceAll('\\', String.raw`\\`)}` : quoted
}

const identifier = (text: string): string =>
  /^[a-z_][a-z0-9_]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`

/** Schemas whose names Redrive has chosen. Another one can be a reserved word. */
const OWN_SCHEMA = /^redrive(_[a-z]+)?$/

/** Quotes the name of a table or function. The name of a schema contains no dot. */
function table(text: string): string {
  const [schema = '', ...name] = text.split('.')
  const quoted = OWN_SCHEMA.test(schema) ? schema : `"${schema.replaceAll('"', '""')}"`
  return `${quoted}.${identifier(name.join('.'))}`
}

/** The quoting functions for placeholders in a fix: `{name}` for a shell, `{name:kind}` for others. */
export const QUOTES: Readonly<Record<string, (text: string) => string>> = {
  literal,
  identifier,
  table,
  js: (text) => JSON.stringify(text),
  /** Redrive's own text, or text that is already quoted. */
  text: (text) => text,
}

/** Matches `{name}` or `{name:kind}`. Other braces are JSON in a command, and stay. */
export const FILLS: RegExp = /\{([a-z][A-Za-z]*)(?::([a-z]+))?\}/g
