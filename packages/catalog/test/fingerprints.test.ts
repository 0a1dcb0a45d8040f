import { describe, expect, test } from 'vitest'
import { catalog, type FingerprintRule } from '../src/index.ts'
import { namedGroupId } from '../src/ingest/identity.ts'
import { containsPattern } from '../src/regrouping/match.ts'
import { applyFingerprints, previewFingerprints } from '../src/regrouping/fingerprints.ts'
import { dead, ListSource, migrated, NOW, refusal, rows, type Said } from './rig.ts'

const pool = await migrated('redrive_catalog_fingerprints')
const [A, B] = ['1-00000000000000aa', '1-00000000000000bb'] as const
const DAY = 86_400_000

const declined = (over: Partial<FingerprintRule> = {}): FingerprintRule => ({
  name: 'acquirers',
  match: { text: 'acquirer * declined' },
  group: 'Acquirer declined',
  ...over,
})
const plain = catalog({ pool })
const withRules = (...fingerprints: readonly FingerprintRule[]) => catalog({ pool, fingerprints })

const letters = (count: number, said: Said) => Array.from({ length: count }, () => dead(said))
const ELAVON = { signature: A, message: 'acquirer Elavon declined: do not honor' }
const NETS = { signature: B, message: 'Acquirer nets DECLINED: no funds' }

const groupsOf = async (source: string) =>
  (await plain.groups({ sources: [source], limit: 200 })).groups.map(
    ({ title, openCount, name }) => ({
      title,
      openCount,
      name,
    }),
  )

const trendOf = async (group: string) => {
  const span = { per: 'minute', after: NOW - 3_600_000, before: NOW + 3_600_000 } as const
  const points = await plain.trend({ ...span, groups: [group] })
  return points.reduce((sum, { count }) => sum + count, 0)
}

/** Compares all stored counts of the groups with their rows; returns the differences. */
const miscounted = () =>
  rows(
    pool,
    `select g.id, g.open_count, g.count, d.open, d.count, m.count, h.count from redrive_catalog.failure_group g
       cross join lateral (select count(*) as count, count(*) filter (where status = 'open') as open,
         coalesce(sum(attempts), 0) as attempts
         from redrive_catalog.dead_letter d where d.group_id = g.id) d
       cross join lateral (select coalesce(sum(count), 0) as count from redrive_catalog.group_minute where group_id = g.id) m
       cross join lateral (select coalesce(sum(count), 0) as count from redrive_catalog.group_hour where group_id = g.id) h
       where (g.open_count, g.count, g.attempts, m.count, h.count)
         is distinct from (d.open, d.count, d.attempts, d.count, d.count)`,
  )

describe('a pattern', () => {
  test.each([
    ['no rate for EUR', 'rate for', true],
    ['no rate for EUR', 'RATE * eur', true],
    ['no rate for EUR', 'eur * rate', false],
    ['abcabd', 'ab*abd', true],
    ['aab', 'a*a*a', false],
    ['a.c', 'a.c', true],
    ['abc', 'a.c', false],
    ['100 %', '100 %', true],
  ])('in %j: %j is found: %j', (text, pattern, expected) => {
    expect(containsPattern(text, pattern)).toBe(expected)
  })

  test('needs no second attempt, also for the worst text', () => {
    const started = performance.now()
    for (let round = 0; round < 100; round += 1) {
      containsPattern('a'.repeat(1_000), `${'a*'.repeat(99)}b`)
    }
    expect(performance.now() - started).toBeLessThan(1_000)
  })
})

describe('a fingerprint rule', () => {
  test('groups new dead letters by its name, whatever their signatures are', async () => {
    const made = withRules(declined())
    const all = [...letters(2, ELAVON), ...letters(3, NETS), dead({ message: 'other' })]
    await made.ingest(new ListSource(all, 'new'))
    const { groups } = await made.groups({ sources: ['new'], order: 'open_count' })
    expect(groups).toMatchObject([
      { title: 'Acquirer declined', name: 'Acquirer declined', openCount: 5, mergedCount: 0 },
      { title: 'other', name: undefined, openCount: 1 },
    ])
    const id = namedGroupId('new', 'Acquirer declined')
    const { deadLetters } = await made.deadLetters({ groups: [id] })
    expect(new Set(deadLetters.map(({ group }) => group))).toEqual(new Set([id]))
    expect(await trendOf(id)).toBe(5)
  })

  test('keeps the handler and the class of each dead letter', async () => {
    const made = withRules(declined())
    const of = (handler: string, said: Said) => ({ ...dead({ ...ELAVON, ...said }), handler })
    const all = [of('ledger', { class: 'business' }), of('refund', { class: 'transient' })]
    await made.ingest(new ListSource(all, 'handlers'))
    const group = namedGroupId('handlers', 'Acquirer declined')
    const query = { groups: [group], handler: 'refund' }
    expect((await made.deadLetters(query)).deadLetters).toMatchObject([
      { handler: 'refund', class: 'transient', group },
    ])
    expect((await made.groups({ sources: ['handlers'], handler: 'refund' })).groups).toMatchObject([
      { id: group, openCount: 2 },
    ])
    const { sources } = await made.counts()
    expect(sources.find(({ source }) => source === 'handlers')?.openByClass).toEqual({
      business: 1,
      transient: 1,
    })
  })

  test('decides by the first match, and only in its source', async () => {
    const made = withRules(
      declined({ name: 'elsewhere', source: 'x', group: 'never' }),
      declined({ name: 'first', match: { text: 'elavon', class: 'business' }, group: 'Elavon' }),
      declined(),
      declined({ name: 'late', match: { text: 'declined' }, group: 'never' }),
    )
    const all = [dead({ ...ELAVON, class: 'business' }), dead(ELAVON), dead(NETS)]
    await made.ingest(new ListSource(all, 'order'))
    expect(
      (await groupsOf('order')).map(({ title, openCount }) => `${title} ${openCount}`).sort(),
    ).toEqual(['Acquirer declined 2', 'Elavon 1'])
  })

  test('can be merged and unmerged as any group, also before a new part appears', async () => {
    const made = withRules(declined())
    await made.ingest(new ListSource([dead(ELAVON), dead({ message: 'other' })], 'merged'))
    const { groups } = await made.groups({ sources: ['merged'] })
    const other = groups.find(({ name }) => name === undefined)?.id ?? ''
    const named = namedGroupId('merged', 'Acquirer declined')
    await made.regrouping.merge(other, { groups: [named], by: 'ada', reason: 'same' })
    await made.ingest(new ListSource([dead({ ...NETS, class: 'business' })], 'merged'))
    expect(await made.group(other)).toMatchObject({ openCount: 3, mergedCount: 1 })
    await made.regrouping.unmerge(named)
    expect(await made.group(named)).toMatchObject({ openCount: 2 })
    expect(await made.group(other)).toMatchObject({ openCount: 1 })
  })

  test('is rejected with every problem', () => {
    const rules = [
      declined({ match: {} }),
      declined({ match: { text: '**' }, group: '' }),
      { name: 'x', match: { regex: 'a+' }, group: 'g' } as unknown as FingerprintRule,
    ]
    expect(() => withRules(...rules)).toThrow(
      [
        'fingerprints[0]: match: expected at least one of class, code, type, errorType, handler, text',
        'fingerprints[1]: group: expected 1 to 200 characters',
        'fingerprints[1]: match.text: expected a character other than *, because * alone matches everything',
        'fingerprints[2]: match.regex: expected no such condition. Use one of class, code, type, errorType, handler, text',
        'fingerprints: two rules have the name "acquirers"',
      ].join('\n'),
    )
  })
})

describe('a signature of the consumer', () => {
  test('groups dead letters, keeps the handler, and is shown as given by the consumer', async () => {
    const of = (message: string) => ({
      ...dead({ signature: 'own:ledger:declined', message }),
      handler: 'ledger',
    })
    await plain.ingest(new ListSource([of('one text'), of('another text')], 'own'))
    const { groups } = await plain.groups({ sources: ['own'] })
    expect(groups).toMatchObject([
      {
        signature: 'own:ledger:declined',
        signatureFrom: 'consumer',
        handler: 'ledger',
        openCount: 2,
      },
    ])
    await plain.ingest(new ListSource([dead()], 'rules'))
    expect((await plain.groups({ sources: ['rules'] })).groups).toMatchObject([
      { signatureFrom: 'rules' },
    ])
  })
})

describe('the dry run', () => {
  test('shows what each rule would move, from which groups, with examples, and changes nothing', async () => {
    await plain.ingest(new ListSource([...letters(4, ELAVON), ...letters(2, NETS), dead()], 'dry'))
    const before = await groupsOf('dry')
    const unused = declined({ name: 'unused', match: { code: 'E1' }, group: 'unused' })
    const { rules, examined, isComplete } = await plain.regrouping.preview(
      ['dry'],
      [unused, declined()],
    )
    expect({ examined, isComplete }).toEqual({ examined: 7, isComplete: true })
    expect(rules).toMatchObject([
      { rule: 'unused', count: 0, from: [], examples: [] },
      {
        rule: 'acquirers',
        group: 'Acquirer declined',
        count: 6,
        from: [{ count: 4 }, { count: 2 }],
      },
    ])
    expect(rules[1]?.examples).toHaveLength(3)
    expect(rules[1]?.examples[0]?.message).toContain('cquirer')
    expect(await groupsOf('dry')).toEqual(before)
  })

  test('ends after its time and reports that it is incomplete', async () => {
    await plain.ingest(new ListSource(letters(5, ELAVON), 'slow'))
    const reader = { pool, timeoutMs: 2_000 }
    const found = await previewFingerprints({ pool, reader }, [declined()], ['slow'], -1)
    expect(found).toMatchObject({ isComplete: false, examined: 0 })
  })

  test('rejects invalid rules', async () => {
    const { message } = await refusal(plain.regrouping.preview(['dry'], [declined({ match: {} })]))
    expect(message).toContain('match: expected at least one of')
  })
})

describe('an explicit apply', () => {
  test('moves open dead letters with all counts, and leaves settled ones', async () => {
    await plain.ingest(new ListSource([...letters(4, ELAVON), ...letters(2, NETS)], 'apply'))
    const { deadLetters } = await plain.deadLetters({ sources: ['apply'], after: NOW - DAY })
    const [first] = deadLetters
    await plain.discard({ ids: [first?.id ?? ''] }, { by: 'ada' })
    const made = withRules(declined())
    expect(await made.regrouping.apply({ sources: ['apply'] })).toEqual({
      moved: 5,
      examined: 5,
      nextCursor: undefined,
    })
    const named = namedGroupId('apply', 'Acquirer declined')
    expect(await made.group(named)).toMatchObject({ openCount: 5, count: 5, attempts: 15 })
    expect(await trendOf(named)).toBe(5)
    expect(await miscounted()).toEqual([])
    expect(await made.regrouping.apply({ sources: ['apply'] })).toMatchObject({ moved: 0 })
  })

  test('keeps runs and selections that were planned before', async () => {
    await plain.ingest(new ListSource(letters(3, ELAVON), 'frozen'))
    const query = { sources: ['frozen'], after: NOW - DAY }
    const chosen = await plain.select({ action: 'discard', query, by: 'ada' })
    await withRules(declined()).regrouping.apply({ sources: ['frozen'] })
    const done = await plain.applySelection('discard', chosen.id, { hash: chosen.hash, by: 'ada' })
    expect(done).toMatchObject({ changed: 3, skippedCount: 0 })
    expect(await plain.group(namedGroupId('frozen', 'Acquirer declined'))).toMatchObject({
      openCount: 0,
      count: 3,
    })
  })

  test('returns dead letters to the groups of their signatures when the rule is removed', async () => {
    await withRules(declined()).ingest(
      new ListSource([...letters(2, ELAVON), dead(NETS)], 'removed'),
    )
    const { rules } = await plain.regrouping.preview(['removed'])
    expect(rules).toMatchObject([{ rule: undefined, count: 3 }])
    expect(await plain.regrouping.apply({ sources: ['removed'] })).toMatchObject({ moved: 3 })
    expect(new Set((await groupsOf('removed')).map(({ openCount }) => openCount))).toEqual(
      new Set([0, 1, 2]),
    )
    expect(await miscounted()).toEqual([])
  })

  test('continues where it ended, with exact counts during an ingest', async () => {
    const made = withRules(declined())
    const two = Array.from({ length: 4_500 }, (_, at) => dead({ ...ELAVON, at: NOW - at }))
    await plain.ingest(new ListSource(two, 'many'))
    const reader = { pool, timeoutMs: 2_000 }
    const ingest = (async () => {
      for (let round = 0; round < 5; round += 1) {
        await made.ingest(new ListSource(letters(20, NETS), 'many'))
        await plain.ingest(new ListSource(letters(20, { ...NETS, message: 'other' }), 'many'))
      }
    })()
    let [moved, calls, cursor] = [0, 0, undefined as string | undefined]
    do {
      const request = { sources: ['many'], ...(cursor === undefined ? {} : { cursor }) }
      const done = await applyFingerprints({ pool, reader }, [declined()], request, -1)
      moved += done.moved
      calls += 1
      cursor = done.nextCursor
    } while (cursor !== undefined)
    await ingest
    expect([moved, calls]).toEqual([4_500, 3])
    expect(await made.group(namedGroupId('many', 'Acquirer declined'))).toMatchObject({
      openCount: 4_600,
      count: 4_600,
    })
    expect(await miscounted()).toEqual([])
    const { message } = await refusal(made.regrouping.apply({ sources: ['many'], cursor: 'x' }))
    expect(message).toContain('nextCursor')
  })
})

test('retention deletes the empty parts of a named group, and then the group, but not that of a split', async () => {
  const made = withRules(declined())
  await made.ingest(new ListSource([...letters(2, ELAVON), ...letters(1, NETS)], 'empty'))
  const named = namedGroupId('empty', 'Acquirer declined')
  const { group } = await made.regrouping.split(named, {
    ...{ conditions: { texts: ['nets'] }, name: 'Nets only', by: 'ada', reason: 'other contract' },
  })
  // The rule is removed: new dead letters have other groups, and the old ones expire.
  await pool.query(
    `with source as (select id from redrive_catalog.source where name = 'empty'),
       gone as (delete from redrive_catalog.dead_letter where source_id = (select id from source))
     update redrive_catalog.failure_group set open_count = 0, count = 0, last_seen_at = now() - interval '200 days'
       where source_id = (select id from source)`,
  )
  expect((await made.maintain()).groups).toBe(2)
  expect((await made.maintain()).groups).toBe(1)
  expect((await made.maintain()).groups).toBe(0)
  expect(await made.group(named)).toBeUndefined()
  expect(await made.group(group.id)).toMatchObject({ name: 'Nets only' })
  const parts = await rows(
    pool,
    'select from redrive_catalog.group_part p where not exists (select from redrive_catalog.failure_group g where g.id = p.part_id)',
  )
  expect(parts).toEqual([])
  // The next failure creates the group again.
  await made.ingest(new ListSource([...letters(2, ELAVON), ...letters(1, NETS)], 'empty'))
  expect(await made.group(named)).toMatchObject({ openCount: 2, mergedCount: 0 })
  expect(await made.group(group.id)).toMatchObject({ openCount: 1 })
})

/** Gives a source as many groups as it may have. */
const fill = (source: string) =>
  pool.query(
    `insert into redrive_catalog.failure_group (id, source_id, signature, algorithm, class, title, sample, first_seen_at, last_seen_at)
       select gen_random_uuid(), s.id, 'x-' || n, 1, 'unknown', 't', 't', now(), now()
         from redrive_catalog.source s, generate_series(1, 10000) n where s.name = $1`,
    [source],
  )

test('a source with too many groups has one part for all further handlers of a named group', async () => {
  const made = withRules(declined())
  await made.ingest(new ListSource(letters(1, { signature: A, message: 'another' }), 'full'))
  await fill('full')
  const several = ['a', 'b', 'c'].flatMap((handler) =>
    letters(2, ELAVON).map((one) => ({ ...one, handler })),
  )
  expect(await made.ingest(new ListSource(several, 'full'))).toMatchObject({ added: 6 })
  const parts = await rows(
    pool,
    `select g.handler, g.open_count::integer as open from redrive_catalog.failure_group g
       join redrive_catalog.group_part p on p.part_id = g.id where p.group_id = $1`,
    [namedGroupId('full', 'Acquirer declined')],
  )
  expect(parts).toEqual([{ handler: null, open: 6 }])
})

test('applying rules keeps the limit of groups of a source', async () => {
  const made = withRules(declined())
  const several = ['a', 'b', 'c'].flatMap((handler) =>
    letters(2, ELAVON).map((one) => ({ ...one, handler })),
  )
  await plain.ingest(new ListSource(several, 'limited'))
  await fill('limited')
  const groups = () =>
    rows<{ name: string | null; signature: string; handler: string | null; open: number }>(
      pool,
      `select g.name, g.signature, g.handler, g.open_count::integer as open from redrive_catalog.failure_group g
         join redrive_catalog.source s on s.id = g.source_id where s.name = 'limited' and g.open_count > 0`,
    )
  expect(await made.regrouping.apply({ sources: ['limited'] })).toMatchObject({ moved: 6 })
  expect(await groups()).toMatchObject([{ name: 'Acquirer declined', handler: null, open: 6 }])
  expect(await made.regrouping.apply({ sources: ['limited'] })).toMatchObject({ moved: 0 })
  // The group by signature is gone, and there is no room for a new one.
  await pool.query(
    `delete from redrive_catalog.failure_group g using redrive_catalog.source s
       where s.id = g.source_id and s.name = 'limited' and g.name is null and g.signature not like 'x-%'`,
  )
  expect(await plain.regrouping.apply({ sources: ['limited'] })).toMatchObject({ moved: 6 })
  expect(await groups()).toMatchObject([{ name: null, signature: 'overflow', open: 6 }])
  expect(await miscounted()).toEqual([])
})
