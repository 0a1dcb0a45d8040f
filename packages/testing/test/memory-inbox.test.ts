import { describe, expect, it } from 'vitest'
import { memoryInbox } from '../src/index.ts'

const entry = { consumer: 'billing', key: 'order-1', fingerprint: 'f' }
const work = () => Promise.resolve()

describe('memoryInbox', () => {
  it('runs the work once per key and consumer', async () => {
    const inbox = memoryInbox()
    let runs = 0
    const count = () => Promise.resolve(void runs++)
    expect(await inbox.handle(entry, count)).toBe('handled')
    expect(await inbox.handle(entry, count)).toBe('already_handled')
    expect(await inbox.handle({ ...entry, consumer: 'mail' }, count)).toBe('handled')
    expect(runs).toBe(2)
    expect([inbox.count, inbox.has('billing', 'order-1')]).toEqual([2, true])
  })

  it('returns conflict for the same key with different content', async () => {
    const inbox = memoryInbox()
    await inbox.handle(entry, work)
    expect(await inbox.handle({ ...entry, fingerprint: 'g' }, work)).toBe('conflict')
  })

  it('lets either the edited message or its original take effect', async () => {
    const edited = { ...entry, key: 'order-1/edited', fingerprint: 'g', replaces: 'order-1' }
    const first = memoryInbox()
    expect(await first.handle(edited, work)).toBe('handled')
    expect(await first.handle(entry, work), 'different content, but no conflict').toBe(
      'already_handled',
    )
    expect(await first.handle(edited, work)).toBe('already_handled')
    expect(await first.handle({ ...edited, fingerprint: 'h' }, work)).toBe('conflict')
    expect(await first.handle({ ...entry, consumer: 'mail' }, work)).toBe('handled')
    const second = memoryInbox()
    expect(await second.handle(entry, work)).toBe('handled')
    expect(await second.handle(edited, work)).toBe('already_handled')
    expect(second.has('billing', edited.key), 'the edited key is not recorded').toBe(false)
  })

  it('makes an edited message and its original wait for each other', async () => {
    const edited = { ...entry, key: 'order-1/edited', fingerprint: 'g', replaces: 'order-1' }
    for (const [one, other] of [
      [entry, edited],
      [edited, entry],
    ] as const) {
      const inbox = memoryInbox()
      const { promise, resolve } = Promise.withResolvers<void>()
      let runs = 0
      const first = inbox.handle(one, () => promise)
      const second = inbox.handle(other, () => Promise.resolve(void runs++))
      resolve()
      expect([await first, await second, runs]).toEqual(['handled', 'already_handled', 0])
    }
  })

  it('records nothing and has no effect when the work throws', async () => {
    const inbox = memoryInbox()
    const effects: string[] = []
    const failing = inbox.handle(entry, async (tx) => {
      tx.onCommit(() => effects.push('failed'))
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    expect([inbox.count, effects]).toEqual([0, []])
    const result = await inbox.handle(entry, (tx) => {
      tx.onCommit(() => effects.push('done'))
      return Promise.resolve()
    })
    expect([result, effects]).toEqual(['handled', ['done']])
  })

  it('makes deliveries of the same key wait for each other, but not other keys', async () => {
    const inbox = memoryInbox()
    const order: string[] = []
    let finish = (_: 'fail' | 'succeed') => {}
    const first = inbox.handle(entry, () => {
      order.push('first')
      return new Promise((resolve, reject) => {
        finish = (how) => (how === 'fail' ? reject(new Error('no')) : resolve())
      })
    })
    const run = (name: string) => () => Promise.resolve(void order.push(name))
    const second = inbox.handle(entry, run('second'))
    const third = inbox.handle(entry, run('third'))
    expect(await inbox.handle({ ...entry, key: 'order-2' }, run('other'))).toBe('handled')
    expect(order).toEqual(['first', 'other'])
    finish('fail')
    await expect(first).rejects.toThrow('no')
    expect([await second, await third]).toEqual(['handled', 'already_handled'])
    expect(order).toEqual(['first', 'other', 'second'])
  })
})
