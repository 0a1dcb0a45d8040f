import { inspect } from 'node:util'

const HIDDEN = '***'

/** A text that nobody sees by accident: printed, logged or dumped it is `***`. */
export class Secret {
  readonly #text: string
  readonly #shown: string

  constructor(text: string, shown: string = HIDDEN) {
    this.#text = text
    this.#shown = shown
  }

  /** A URL whose host may be seen, and what lets somebody in may not. */
  static ofUrl(text: string): Secret {
    return new Secret(text, shownUrl(text))
  }

  /** Only where it is handed to whom it is for. */
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
  // Addresses for webhooks have their secret in the path.
  if (/^https?:$/.test(protocol)) return `${protocol}//${host}/${HIDDEN}`
  const who = username === '' && password === '' ? '' : `${HIDDEN}@`
  return `${protocol}//${who}${host}${pathname}${search === '' ? '' : `?${HIDDEN}`}`
}
