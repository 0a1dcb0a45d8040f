/** Kinds of personal data and secrets that are found in texts, in the order of the work. */
export const DETECTORS = ['privateKey', 'token', 'card', 'iban', 'email'] as const
export type Detector = (typeof DETECTORS)[number]

const hidden = (what: string) => `[hidden: ${what}]`

/** Replaces the values of one kind in a text. */
const HIDE: Readonly<Record<Detector, (text: string) => string>> = {
  privateKey: (text) => text.replace(PRIVATE_KEY, hidden('private key')),
  token: (text) =>
    text
      .replace(JWT, hidden('token'))
      .replace(KNOWN_TOKEN, hidden('token'))
      .replace(SCHEME, `$1 ${hidden('token')}`)
      .replace(PASSWORD_IN_URL, `$1${hidden('password')}@`)
      .replace(NAMED_SECRET, `$1${hidden('secret')}`),
  card: (text) =>
    text.replace(CARD, (found) => (isCard(digitsOf(found)) ? hidden('card number') : found)),
  iban: hideIbans,
  email: (text) => text.replace(EMAIL, hidden('e-mail')),
}

const PRIVATE_KEY =
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g

/** A JSON Web Token: three parts, of which the first begins with `{"` in base64. */
const JWT = /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g

/** Tokens whose issuers give them a prefix, so that scanners find them. */
const KNOWN_TOKEN = new RegExp(
  `\\b(?:${[
    'rdv_[\\w-]{16,}', // Redrive
    '[rps]k_(?:live|test)_\\w{8,}', // Stripe
    'gh[oprsu]_\\w{20,}', // GitHub
    'github_pat_\\w{20,}',
    'glpat-[\\w-]{16,}', // GitLab
    'xox[abeprs]-[\\w-]{10,}', // Slack
    'A[KS]IA[0-9A-Z]{16}', // AWS
    'AIza[\\w-]{30,}', // Google
    'npm_\\w{30,}',
    'SG\\.[\\w-]{16,}\\.[\\w-]{16,}', // SendGrid
    'whsec_[\\w+/]{24,}={0,2}', // webhooks
  ].join('|')})`,
  'g',
)

/** The value of an Authorization header. Words such as "Basic authentication" have no digit and no sign. */
const SCHEME = /\b(bearer|basic)\s+(?=[\w.~+/-]*[\d+/=.~_-])[\w.~+/-]{8,}={0,2}/gi

const PASSWORD_IN_URL = /(\b[a-z][a-z\d+.-]{0,20}:\/\/[^\s/:@]{0,200}:)[^\s@]{1,200}@/gi

/** `password=…`, `password: …` and `"password":"…"`, also with escaped quotes, and for other names of secrets. */
const NAMED_SECRET =
  /(\b[\w-]{0,30}(?:password|passwd|secret|token|api[-_]?key|access[-_]?key)(?:\\?["'])?\s?(?:=|:(?!\/\/))\s?(?:\\?["'])?)(?![\s"'\\])[^\s"'\\&,;]{3,2000}/gi

/** 13 to 19 digits, without separators or in the groups of a card. */
const CARD =
  /(?<!\d|\d\.)(?:\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d{13,19})(?!\d)/g

const digitsOf = (text: string) => text.replaceAll(/\D/g, '')

/** Numbers of cards begin with 2 to 6 and end with a check digit. Timestamps in milliseconds begin with 1. */
function isCard(digits: string): boolean {
  if (!/^[2-6]/.test(digits)) return false
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const doubled = digit * 2
    sum += at % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** Country and check digits. */
const IBAN_START = /\b[a-z]{2}\d{2}/gi
/** Letters and digits, in groups of four or without spaces. */
const IBAN_RUN = /^[a-z\d](?: ?[a-z\d]){14,33}/i

const IBAN_MIN = 15
/** 34 characters with a space after each group of four. */
const IBAN_MAX = 42

function hideIbans(text: string): string {
  let result = ''
  let at = 0
  for (const { index } of text.matchAll(IBAN_START)) {
    const run = IBAN_RUN.exec(text.slice(index, index + IBAN_MAX))?.[0]
    if (index < at || run === undefined) continue
    const length = ibanLength(run, text[index + run.length])
    if (length === undefined) continue
    result += text.slice(at, index) + hidden('IBAN')
    at = index + length
  }
  return result + text.slice(at)
}

/** Returns the length of the longest beginning that is an IBAN and ends with a word: words may follow it. */
function ibanLength(run: string, next = ' '): number | undefined {
  for (let end = run.length; end >= IBAN_MIN; end--) {
    // After a space, the run goes on with a letter or digit, so no beginning ends with a space.
    const isEnd = !/[a-z\d]/i.test(run[end] ?? next)
    if (isEnd && isIban(run.slice(0, end).replaceAll(' ', ''))) return end
  }
  return undefined
}

/** The remainder of the number, with letters as 10 to 35 and the first four characters at the end, is 1 (ISO 13616). */
function isIban(text: string): boolean {
  let remainder = 0
  for (const character of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder === 1
}

const EMAIL = /[\w.%+-]{1,64}@(?:[a-z\d-]{1,63}\.){1,8}[a-z]{2,24}\b/gi

/** Returns a function that hides what these detectors find. Default: all. */
export function hiding(detectors: readonly Detector[] = DETECTORS): (text: string) => string {
  const hides = DETECTORS.filter((one) => detectors.includes(one)).map((one) => HIDE[one])
  return (text) => hides.reduce((result, hide) => hide(result), text)
}
