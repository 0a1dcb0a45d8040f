import type { Operation } from '@redrive/api'
import { FILTER_FIELDS, formatFilterWord } from '@redrive/api/filter'
import { type Route, ROUTES, toQueryString } from '@redrive/api/internal'
import type { Scenario } from '../../harness/scenario.ts'
import { type Person, isOk, type HttpResponse } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { STATEMENTS } from './strings.ts'
import type { Target } from './target.ts'

/** Request values are parameters of a statement and never a part of its text. */
export const SQL: Scenario = attack(
  'sql',
  'statements in every filter, order, cursor, pointer and name of every request',
  async (scene) => {
    const { target, tries } = scene
    const { pool, queues, as } = target
    await queues.kill(pool, 'orders', [{ body: '{"order":"mine"}' }])
    await queues.kill(pool, 'billing', [{ body: `{"order":"${MARK}"}`, message: MARK, key: MARK }])
    const before = await sumOf(target)
    const questions = [...filterQuestions(), ...planned()]
    // Eight concurrent requests, as from several users.
    const lanes = Array.from({ length: 8 }, async (_, lane) => {
      for (let at = lane; at < questions.length; at += 8) {
        const question = questions[at]
        if (question !== undefined) await ask(scene, as.alice, question)
      }
    })
    await Promise.all(lanes)
    tries.note('the tables of the catalog were changed', (await sumOf(target)) !== before)
  },
)

/**
 * Text in dead letters of another source. A response that contains it shows data without
 * permission.
 */
const MARK = 'ofbilling'
/** The sleep of the statements, minus the possible difference of two clocks. */
const SLEPT_MS = 2_900
/** An injected sleep happens every time; a stall of the machine does not. */
const SENT_TIMES = 3

interface Question {
  readonly what: string
  readonly send: (asking: Person) => Promise<HttpResponse>
}

async function ask({ tries }: Scene, alice: Person, { what, send }: Question): Promise<void> {
  const response = await send(alice)
  const isExpected = isOk(response) || [400, 403, 404, 409, 422].includes(response.status)
  tries.note(`${what}: ${response.status}`, !isExpected)
  tries.note(
    `${what}: took ${response.ms.toFixed(0)} ms`,
    await sleeps(response, () => send(alice)),
  )
  tries.note(`${what}: shows data of another source`, response.text.includes(MARK))
}

async function sleeps(first: HttpResponse, again: () => Promise<HttpResponse>): Promise<boolean> {
  let { ms } = first
  for (let time = 1; time < SENT_TIMES && ms >= SLEPT_MS; time++) ms = (await again()).ms
  return ms >= SLEPT_MS
}

/** Values that a request needs before its fields are read. */
const NEEDED: { readonly [K in Operation]?: Readonly<Record<string, unknown>> } = {
  listDeadLetters: { filter: 'after:0' },
  exportDeadLetters: { filter: 'after:0' },
  trend: { per: 'hour', after: 0, before: 1 },
}

/** Builds requests from the table of routes, so that a new filter is attacked as well. */
function filterQuestions(): readonly Question[] {
  const rows = Object.entries(ROUTES) as [Operation, Route][]
  return rows.flatMap(([name, { method, path, query }]) => {
    if (method !== 'GET' || query === undefined) return []
    const url = path.replace('{id}', '00000000-0000-0000-0000-000000000000')
    return Object.keys(query.shape).flatMap((field) =>
      STATEMENTS.flatMap((text) =>
        valuesFor(field, text).map((value): Question => {
          const asks = { ...NEEDED[name], [field]: value }
          const what = `${name} with ${field}=${JSON.stringify(value)}`
          return { what, send: (asking) => asking('GET', `${url}${toQueryString(asks)}`) }
        }),
      ),
    )
  })
}

/** Returns the values for a field. A filter has many positions for a text. */
const valuesFor = (field: string, text: string): readonly unknown[] =>
  field === 'filter' ? filtersWith(text) : [text]

/** Builds filters with the text as the value of every field, in every position of a pair, and as a field. */
function filtersWith(text: string): readonly string[] {
  const words = FILTER_FIELDS.flatMap(({ name, kind }) =>
    ['pair', 'json'].includes(kind)
      ? [`/${text}=1`, `/order=${text}`, `/order/${text}/0=x`, `${text}=1`].map((value) =>
          formatFilterWord(name, value),
        )
      : [formatFilterWord(name, text)],
  )
  return [...words.map((word) => `after:0 ${word}`), ...words, text, `${text}:orders after:0`]
}

/** Builds the same requests where the values are in a body. */
function planned(): readonly Question[] {
  return STATEMENTS.flatMap(filtersWith).map(
    (filter): Question => ({
      what: `planReplay with ${JSON.stringify(filter)}`,
      send: (asking) => asking('POST', '/api/v1/replays', { body: { selection: { filter } } }),
    }),
  )
}

/**
 * A checksum over every row of the users' dead letters. Plans are created on purpose and are not
 * included.
 */
const SUM = `
select md5(string_agg(md5(d::text), '' order by d.id)) || ':' || (select count(*) from redrive_catalog.failure_group)
    || ':' || (select count(*) from redrive_catalog.source)
    || ':' || (select count(*) from redrive_catalog.dead_letter_payload) as sum
  from redrive_catalog.dead_letter d`

async function sumOf({ pool }: Target): Promise<string> {
  const { rows } = await pool.query<{ sum: string }>(SUM)
  return rows[0]?.sum ?? ''
}
