import { inspect } from 'node:util'

const HIDDEN = '***'

/** A secret text. Printing, logging or serializing it produces `***`. */
export class Secret {
  readonly #text: string
  readonly #shown: string

  constructor(text: string, shown: string = HIDDEN) {
    this.#text = text
    this.#shown = shown
  }

  /** Creates a secret from a URL. Its printed form contains the host, without credentials. */
  static ofUrl(text: string): Secret {
    return new Secret(text, shownUrl(text))
  }

  /** Returns the secret text. Call it only where the text is passed to the system that needs it. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return this.#shown
  }

  toJSON(): string {
    return this.#shown
  }

  [inspect.custom](): string {
    return this.#shown
  }
}

function shownUrl(text: string): string {
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, username, password, host, pathname, search } = new URL(text)
  // Webhook URLs often contain a secret in the path.
  if (/^https?:$/.test(protocol)) return `${protocol}//${host}/${HIDDEN}`
  const credentials = username === '' && password === '' ? '' : `${HIDDEN}@`
  return `${protocol}//${credentials}${host}${pathname}${search === '' ? '' : `?${HIDDEN}`}`
}
