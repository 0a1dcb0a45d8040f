import { RedriveError } from '@redrive/core'
import { pointerSteps } from '../json-pointer.ts'

/** 200 rows per page: enough for a user to read, and a limit for the cost of one query. */
const PAGE_MAX = 200
export const PAGE = 50
/** 1,000 names: more sources than one team has access to. */
export const SOURCES_MAX = 1_000
/** 512 characters: the maximum length of a stored name. */
const TEXT_MAX = 512
/** The largest value of the PostgreSQL type integer. */
const COUNT_MAX = 2 ** 31 - 1
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** The year 1: PostgreSQL rejects timestamps some thousand years earlier, and no message is that old. */
const TIMESTAMP_MIN = -62_135_596_800_000
/** The largest timestamp that JavaScript and PostgreSQL both accept. */
const TIMESTAMP_MAX = 8.64e15

/** Collects the problems of a query, field by field. Queries come from callers, so their types are not trusted. */
export class Check {
  readonly #operation: string
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #problems: string[] = []

  constructor(operation: string, query: object, known: Readonly<Record<string, true>>) {
    this.#operation = operation
    this.#fields = query as Readonly<Record<string, unknown>>
    for (const name of Object.keys(query)) {
      if (!Object.hasOwn(known, name)) this.problem(`${name.slice(0, TEXT_MAX)}: unknown filter`)
    }
  }

  problem(text: string): void {
    this.#problems.push(text)
  }

  done(): void {
    if (this.#problems.length === 0) return
    const message = `The query of ${this.#operation} is invalid:\n- ${this.#problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems: this.#problems })
  }

  texts(...names: readonly string[]): void {
    this.#each(names, isText, `1 to ${TEXT_MAX} characters without NUL`)
  }

  timestamps(...names: readonly string[]): void {
    this.#each(names, isTimestamp, 'a timestamp in epoch ms, in the years 1 to 275760')
  }

  ranges(...names: readonly string[]): void {
    this.#each(names, isRange, '"from", "to" or both: whole numbers, 0 or more, "from" first')
  }

  booleans(...names: readonly string[]): void {
    this.#each(names, (value) => typeof value === 'boolean', 'true or false')
  }

  oneOf(name: string, known: readonly string[]): void {
    this.#each([name], (value) => known.includes(value as string), `one of ${known.join(', ')}`)
  }

  someOf(name: string, known: readonly string[]): void {
    const isKnown = (value: unknown) => known.includes(value as string)
    this.#each([name], listOf(isKnown, known.length), `some of ${known.join(', ')}, each once`)
  }

  lists(name: string, most: number): void {
    this.#each([name], listOf(isText, most), `a list of 1 to ${most} texts, each once`)
  }

  ids(name: string, most: number): void {
    this.#each([name], listOf(isId, most), `a list of 1 to ${most} ids, each once`)
  }

  pairs(name: string, most: number, isValue: (value: unknown) => boolean): void {
    const isValid = (value: unknown) =>
      typeof value === 'object' &&
      value !== null &&
      Object.keys(value).length <= most &&
      Object.entries(value).every(
        ([key, one]) => isText(key) && isValue(one) && (typeof one !== 'string' || isStorable(one)),
      )
    this.#each([name], isValid, `at most ${most} names with their values`)
  }

  pointers(name: string): void {
    const value = this.#fields[name]
    if (typeof value !== 'object' || value === null) return
    for (const pointer of Object.keys(value)) {
      if (pointerSteps(pointer) === undefined) {
        this.problem(
          `${name}: expected JSON Pointers such as '/order/id', got '${pointer.slice(0, 80)}'`,
        )
      }
    }
  }

  page(): void {
    const isValid = (value: unknown) =>
      Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= PAGE_MAX
    this.#each(['limit'], isValid, `1 to ${PAGE_MAX}`)
  }

  #each(names: readonly string[], isValid: (value: unknown) => boolean, expected: string): void {
    for (const name of names) {
      const value = this.#fields[name]
      if (value !== undefined && !isValid(value)) this.problem(`${name}: expected ${expected}`)
    }
  }
}

const isStorable = (value: string) =>
  value.length <= TEXT_MAX && value.isWellFormed() && !value.includes('\0')

const isText = (value: unknown) => typeof value === 'string' && value !== '' && isStorable(value)

export const isId = (value: unknown): value is string =>
  typeof value === 'string' && UUID.test(value)

export const isTimestamp = (value: unknown): boolean =>
  typeof value === 'number' && value >= TIMESTAMP_MIN && value <= TIMESTAMP_MAX

const isCount = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= COUNT_MAX

function isRange(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { from, to, ...others } = value as Readonly<Record<string, unknown>>
  const given = [from, to].filter((one) => one !== undefined)
  const isOrdered = given.length < 2 || (from as number) <= (to as number)
  return given.length > 0 && given.every(isCount) && isOrdered && Object.keys(others).length === 0
}

const listOf = (isValid: (value: unknown) => boolean, most: number) => (value: unknown) =>
  Array.isArray(value) &&
  value.length >= 1 &&
  value.length <= most &&
  new Set(value).size === value.length &&
  value.every(isValid)
