import { randomUUID } from 'node:crypto'
import type { FailureRecord } from '@redrive/core'
import { describe, expect, test } from 'vitest'
import { catalog } from '../src/index.ts'
import { dead, ListSource, migrated, NOW } from './rig.ts'

const pool = await migrated('redrive_catalog_continued')
const made = catalog({ pool })

type Failed = Partial<FailureRecord> & { readonly handler?: string; readonly stack?: string }

/** Returns a dead letter of the handler `charge` with this failure. */
function failed(signature: string, { handler = 'charge', stack, ...fields }: Failed = {}) {
  const record: FailureRecord = {
    number: 1,
    at: NOW,
    waitedMs: 0,
    class: 'unknown',
    signature,
    code: undefined,
    type: 'KycError',
    message: 'Customer Anna Schmidt is blocked',
    counted: true,
    ...fields,
  }
  const one = dead({ delivery: { id: randomUUID() } })
  const cycle = { ...one.delivery.cycle, history: [record] }
  return {
    ...one,
    delivery: { ...one.delivery, cycle },
    handler,
    ...(stack === undefined ? {} : { stack }),
  }
}

/** Ingests dead letters, in a source for each test, and returns the groups by their signature. */
function sourceOf(name: string) {
  const ingest = (...letters: readonly ReturnType<typeof failed>[]) =>
    made.ingest(new ListSource([...letters], name))
  const groups = async () => {
    const { groups } = await made.groups({ sources: [name] })
    return new Map(groups.map((group) => [group.signature, group]))
  }
  return { ingest, groups }
}

describe('groups of earlier rules', () => {
  test('are linked to the new group with the same failures', async () => {
    const { ingest, groups } = sourceOf('linked')
    await ingest(
      failed('2-a'),
      failed('2-b', { message: 'Customer Bob is blocked' }),
      failed('2-c', { message: 'Customer Bob is unknown' }),
    )
    await ingest(failed('3-a', { message: 'Customer Li Wei is blocked' }))
    const found = await groups()
    const newer = found.get('3-a')
    const older = [found.get('2-a')?.id, found.get('2-b')?.id]
    expect(new Set(newer?.continues)).toEqual(new Set(older))
    expect(newer?.continuedIn).toBeUndefined()
    expect(found.get('2-a')).toMatchObject({ continuedIn: newer?.id, continues: [] })
    expect(found.get('2-c')).toMatchObject({ continuedIn: undefined })
    expect(await made.group(newer?.id ?? '')).toMatchObject({ continues: newer?.continues })
  })

  test.each<[string, Failed]>([
    ['class', { class: 'business' }],
    ['code', { code: 'E1' }],
    ['type', { type: 'OtherError' }],
    ['handler', { handler: 'refund' }],
  ])('are not linked to a group with another %s', async (name, other) => {
    const { ingest, groups } = sourceOf(`other-${name}`)
    await ingest(failed('2-a'))
    await ingest(failed('3-a', other))
    expect((await groups()).get('3-a')?.continues).toEqual([])
  })

  test('are not linked to a group with another frame', async () => {
    const { ingest, groups } = sourceOf('other-frame')
    await ingest(failed('2-a', { stack: '    at charge (/app/a.ts:1:1)' }))
    await ingest(failed('3-a', { stack: '    at refund (/app/a.ts:1:1)' }))
    await ingest(failed('3-b', { stack: '    at charge (/app/a.ts:9:9)' }))
    const found = await groups()
    expect(found.get('3-a')?.continues).toEqual([])
    expect(found.get('3-b')?.continues).toEqual([found.get('2-a')?.id])
  })

  test('are not linked to groups of another source, or of the same rules', async () => {
    await sourceOf('one').ingest(failed('2-a'))
    const { ingest, groups } = sourceOf('two')
    await ingest(failed('3-a'))
    await ingest(failed('3-b'))
    expect([...(await groups()).values()].flatMap(({ continues }) => continues)).toEqual([])
  })

  test('stay linked to their first successor', async () => {
    const { ingest, groups } = sourceOf('first')
    await ingest(failed('2-a'))
    await ingest(failed('3-a'))
    await ingest(failed('3-b'))
    const found = await groups()
    expect(found.get('2-a')?.continuedIn).toBe(found.get('3-a')?.id)
  })

  test('pass on their owner and their mute, and keep both', async () => {
    const { ingest, groups } = sourceOf('muted')
    await ingest(failed('2-a'))
    const { id = '' } = (await groups()).get('2-a') ?? {}
    await made.assignGroup(id, 'ana')
    await made.muteGroup(id)
    await made.comment(id, { author: 'ana', text: 'known' })
    await ingest(failed('3-a'))
    const found = await groups()
    expect(found.get('3-a')).toMatchObject({ owner: 'ana', state: 'muted' })
    expect(found.get('2-a')).toMatchObject({ owner: 'ana', state: 'muted' })
    expect(await made.comments(id)).toMatchObject([{ text: 'known' }])
  })

  test('do not mute the new group if one of them is open', async () => {
    const { ingest, groups } = sourceOf('half-muted')
    await ingest(failed('2-a'), failed('2-b', { message: 'Customer Bob is blocked' }))
    await made.muteGroup((await groups()).get('2-a')?.id ?? '')
    await ingest(failed('3-a'))
    expect((await groups()).get('3-a')).toMatchObject({ owner: undefined, state: 'open' })
  })
})
