import { readFileSync } from 'node:fs'
import { FILTER_FIELDS } from '@redrive/api/filter'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const pool = await database('redrive_server_filter')
const stage = await staged(pool)
const { as, catalog } = stage

describe('dead letters', () => {
  test('are read with every filter in docs/filters.md', async () => {
    const { group } = await fill(catalog, 'orders', 2)
    const docs = readFileSync(new URL('../../../docs/filters.md', import.meta.url), 'utf8')
    const [, block = ''] = /^```filter\n(.*?)^```/ms.exec(docs) ?? []
    const examples = [
      ...block.trim().split('\n'),
      ...FILTER_FIELDS.map(({ example }) => `after:0 ${example}`.replace('after:0 after', 'after')),
    ]
    expect(examples.length).toBeGreaterThan(25)
    for (const filter of examples) {
      const page = await as('admin').call('listDeadLetters', { query: { filter } })
      expect(page.searchedTo).toBeUndefined()
    }
    const filter = `group:${group} source:orders class:business code:E1 attempts:1.. after:2h "declined"`
    const page = await as('admin').call('listDeadLetters', { query: { filter } })
    expect(page.deadLetters).toHaveLength(2)
  })

  test('reject a wrong filter with its position and the correct form', async () => {
    const wrong = as('viewer').call('listDeadLetters', {
      query: { filter: 'after:2h sorce:orders' },
    })
    await expect(wrong).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('Did you mean "source", as in source:orders?') as unknown,
    })
    const unbounded = as('viewer').call('listDeadLetters', { query: { filter: 'source:orders' } })
    await expect(unbounded).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('add after:0') as unknown,
    })
    const answer = await stage.ask('viewer', '/api/v1/dead-letters?filter=after:0&sources=orders')
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('sources')
  })
})
