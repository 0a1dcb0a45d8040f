import { existsSync } from 'node:fs'
import {
  appendFile,
  chmod,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { serializeStoredDeadLetter } from '@redrive/runtime'
import { FakeClock, seededRandom } from '@redrive/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { fileStore } from '../src/index.ts'
import { dayOf } from '../src/layout.ts'
import { deadLetter, idsOf, Place } from './place.ts'

const places: Place[] = []

afterEach(async () => {
  for (const place of places.splice(0)) await place.close()
})

async function madePlace(...options: Parameters<typeof Place.make>): Promise<Place> {
  const place = await Place.make(...options)
  places.push(place)
  return place
}

async function files({ directory }: Place, end: string): Promise<readonly string[]> {
  const names = await readdir(directory, { recursive: true })
  return names.filter((name) => name.endsWith(end)).sort()
}

/** Returns the path of the only segment, and its lines. */
async function onlySegment(place: Place): Promise<{ path: string; lines: readonly string[] }> {
  const names = await files(place, '.jsonl')
  expect(names).toHaveLength(1)
  const path = join(place.directory, names[0] ?? '')
  return { path, lines: (await readFile(path, 'utf8')).split('\n').slice(0, -1) }
}

const sent = () => Promise.resolve()

/** Returns the permissions of everything below the folder, by name without digits that differ between runs. */
async function modesIn(directory: string): Promise<Readonly<Record<string, string>>> {
  const names = await readdir(directory, { recursive: true })
  const modes = names.map(async (name): Promise<[string, string]> => {
    const kind = name.replaceAll(/[0-9a-f]{12,}/g, '#').replace(/\d{4}-\d\d-\d\d/, 'day')
    return [kind, ((await stat(join(directory, name))).mode & 0o777).toString(8)]
  })
  return Object.fromEntries(await Promise.all(modes))
}

// Windows has no such permissions.
describe.skipIf(process.platform === 'win32')('permissions', () => {
  it('creates folders and files for the owner only', async () => {
    const place = await madePlace()
    const store = place.store({ directory: join(place.directory, 'made', 'here') })
    await store.save(deadLetter('a'))
    let whileSending: Readonly<Record<string, string>> = {}
    await store.replay('a', async () => {
      whileSending = await modesIn(place.directory)
    })
    expect(whileSending).toEqual({
      made: '700',
      'made/here': '700',
      'made/here/claims': '700',
      'made/here/claims/#.0': '600',
      'made/here/day': '700',
      'made/here/day/#-#.jsonl': '600',
    })
    await store.close()
    expect(await modesIn(place.directory)).toMatchObject({ 'made/here/day/#-#.index': '600' })
  })

  it('leaves the permissions of an existing folder as they are', async () => {
    const place = await madePlace()
    await chmod(place.directory, 0o755)
    const store = place.store()
    await store.save(deadLetter('a'))
    expect(((await stat(place.directory)).mode & 0o777).toString(8)).toBe('755')
    expect(await modesIn(place.directory)).toEqual({ day: '700', 'day/#-#.jsonl': '600' })
    await store.close()
  })
})

describe('lines and files', () => {
  it('keeps a dead letter as one readable line, in the folder of the day', async () => {
    const clock = new FakeClock({ now: Date.UTC(2026, 10, 15, 23, 59) })
    const place = await madePlace({ clock })
    const store = place.store()
    const one = deadLetter('a')
    await store.save(one)
    const { path, lines } = await onlySegment(place)
    expect(path.slice(place.directory.length)).toMatch(/^\/2026-11-15\/\d{15}-[0-9a-f]{12}\.jsonl$/)
    expect(lines).toEqual([serializeStoredDeadLetter(one)])
    await clock.advance('2m')
    await store.save(deadLetter('b'))
    expect((await files(place, '.jsonl')).map((name) => name.slice(0, 10))).toEqual([
      '2026-11-15',
      '2026-11-16',
    ])
    expect(await idsOf(store)).toEqual(['a', 'b'])
    await store.close()
  })

  it('starts another file when one is full, and finds everything in all of them', async () => {
    const place = await madePlace({ maxFileBytes: 4_096 })
    const store = place.store()
    const ids = Array.from({ length: 50 }, (_, number) => `n${String(number).padStart(2, '0')}`)
    for (const [number, id] of ids.entries()) await store.save(deadLetter(id, { savedAt: number }))
    await store.close()
    const names = await files(place, '.jsonl')
    expect(names.length).toBeGreaterThan(3)
    for (const name of names) {
      expect((await stat(join(place.directory, name))).size).toBeLessThanOrEqual(4_096)
    }
    expect(await idsOf(place.store())).toEqual(ids)
  })

  it('keeps the last of several waiting saves of one id', async () => {
    const place = await madePlace()
    const store = place.store()
    const times = [5, 4, 3, 2, 1]
    await Promise.all(times.map((savedAt) => store.save(deadLetter('same', { savedAt }))))
    for (const each of [store, place.store()]) {
      expect((await each.get('same'))?.savedAt).toBe(1)
      expect((await each.stats()).count).toBe(1)
    }
  })

  it('records a deletion in another line, and never changes written lines', async () => {
    const place = await madePlace()
    const store = place.store()
    await store.save(deadLetter('a'))
    const { path } = await onlySegment(place)
    const before = await readFile(path, 'utf8')
    await store.delete('a')
    const after = await readFile(path, 'utf8')
    expect(after.startsWith(before)).toBe(true)
    expect(after.slice(before.length)).toMatch(/^\{"v":1,"gone":".+","at":\[0\]\}\n$/)
    await store.close()
  })
})

describe('a torn last line', () => {
  it('hides nothing, wherever it is torn', async () => {
    const place = await madePlace()
    const writer = place.store()
    for (const [at, id] of ['a', 'b', 'c'].entries()) {
      await writer.save(deadLetter(id, { savedAt: at }))
    }
    const { path, lines } = await onlySegment(place)
    const whole = await stat(path)
    const last = Buffer.byteLength(lines[2] ?? '') + 1
    for (let cut = 0; cut <= last; cut++) {
      const torn = await madePlace()
      const copy = join(torn.directory, path.slice(place.directory.length))
      await mkdir(join(copy, '..'))
      await copyFile(path, copy)
      await truncate(copy, whole.size - cut)
      const store = torn.store({ fsync: 'never' })
      await store.save(deadLetter('later', { savedAt: 9 }))
      const expected = cut === 0 ? ['a', 'b', 'c', 'later'] : ['a', 'b', 'later']
      expect({ cut, ids: await idsOf(store) }).toEqual({ cut, ids: expected })
      await store.close()
    }
    place.crash(writer)
  })

  it('is read after its end is written', async () => {
    const place = await madePlace()
    const reader = place.store()
    const line = serializeStoredDeadLetter(deadLetter('slow'))
    // The folder of today: no process writes to the folder of an earlier day.
    const path = join(place.directory, `${dayOf(Date.now())}/000000000000001-000000000000.jsonl`)
    await mkdir(join(path, '..'))
    for (const part of [line.slice(0, 10), line.slice(10, 50), line.slice(50)]) {
      await appendFile(path, part)
      expect(await idsOf(reader)).toEqual([])
    }
    await appendFile(path, '\n')
    expect(await idsOf(reader)).toEqual(['slow'])
  })

  it('hides nothing, and neither do foreign lines in the middle', async () => {
    const place = await madePlace()
    const path = join(place.directory, '2026-11-15/000000000000001-000000000000.jsonl')
    await mkdir(join(path, '..'))
    const [a, b] = ['a', 'b'].map((id, at) =>
      serializeStoredDeadLetter(deadLetter(id, { savedAt: at })),
    )
    const noise = [
      '{"v":1,"event":{"body":""},"failure":{"class":"transient"},"cycle":{}}',
      '',
      '{"v":2}',
      '\0\0\0',
      '{"v":1,"gone":7}',
      '{"v":1,"gone":"x","at":"y"}',
      'null',
    ]
    await writeFile(path, `${[a, ...noise, b].join('\n')}\n`)
    expect(await idsOf(place.store())).toEqual(['a', 'b'])
  })

  it('loses only a line that is damaged later, not the others', async () => {
    const place = await madePlace()
    const store = place.store()
    for (const [at, id] of ['a', 'b', 'c'].entries()) {
      await store.save(deadLetter(id, { savedAt: at }))
    }
    const { path, lines } = await onlySegment(place)
    const damaged = [lines[0], 'x'.repeat(lines[1]?.length ?? 0), lines[2]]
    await writeFile(path, `${damaged.join('\n')}\n`)
    expect(await idsOf(store)).toEqual(['a', 'c'])
    expect(await store.get('b')).toBeUndefined()
    expect(await store.replayBatch({ limit: 9 }, sent)).toEqual({ replayed: 2, failed: 0 })
    await store.close()
  })
})

describe('closing', () => {
  it('waits for running sends, and sends nothing more', async () => {
    const place = await madePlace()
    const store = place.store()
    for (const id of ['a', 'b', 'c', 'd']) await store.save(deadLetter(id))
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let sends = 0
    const replaying = store.replayBatch({ limit: 4 }, () => {
      sends += 1
      begun.resolve()
      return gate.promise
    })
    await begun.promise
    const closing = store.close()
    gate.resolve()
    expect(await replaying).toEqual({ replayed: 1, failed: 0 })
    await closing
    expect(sends).toBe(1)
    expect(await idsOf(place.store())).toHaveLength(3)
  })
})

/** Saves enough dead letters to justify an index. */
async function filled(place: Place): Promise<readonly string[]> {
  const store = place.store()
  const ids = Array.from({ length: 300 }, (_, number) => `n${String(number).padStart(3, '0')}`)
  const text = 'x'.repeat(5_000)
  await Promise.all(ids.map((id, savedAt) => store.save(deadLetter(id, { savedAt, text }))))
  await store.delete('n007')
  await store.close()
  return ids.filter((id) => id !== 'n007')
}

describe('the index', () => {
  it('is used: its content is trusted as long as the file has not changed', async () => {
    const place = await madePlace()
    const ids = await filled(place)
    const { path } = await onlySegment(place)
    const { mtimeMs } = await stat(path)
    const bytes = await readFile(path)
    await writeFile(path, bytes.fill('x', 0, bytes.indexOf('\n')))
    // In the middle of the millisecond: seconds with a fraction are rounded.
    const mtime = (Math.floor(mtimeMs) + 0.5) / 1_000
    await utimes(path, mtime, mtime)
    const store = place.store()
    // The damaged first line counts, because it was not read.
    expect((await store.stats()).count).toBe(ids.length)
    expect(await store.get('n001')).toBeDefined()
  })

  it.each([
    ['missing', (path: string) => rm(path)],
    ['empty', (path: string) => writeFile(path, '')],
    ['cut short', (path: string) => truncate(path, 1_000)],
    ['of another program', (path: string) => writeFile(path, 'redrive-index 1 00000000\n{}\n')],
  ])('is rebuilt when it is %s', async (_, damage) => {
    const place = await madePlace()
    const ids = await filled(place)
    const [name = ''] = await files(place, '.index')
    await damage(join(place.directory, name))
    expect(await idsOf(place.store())).toEqual(ids)
    expect(await files(place, '.index')).toHaveLength(1)
    expect(await idsOf(place.store())).toEqual(ids)
  })

  it('is not trusted with one byte changed, wherever that is', async () => {
    const place = await madePlace()
    const ids = await filled(place)
    const [name = ''] = await files(place, '.index')
    const path = join(place.directory, name)
    const good = await readFile(path)
    const random = seededRandom(3)
    for (let round = 0; round < 30; round++) {
      const at = round < 20 ? round * 7 : random.int(good.length)
      const bad = Buffer.from(good)
      bad[at] = (bad[at] ?? 0) ^ 0x41
      await writeFile(path, bad)
      expect({ at, ids: await idsOf(place.store()) }).toEqual({ at, ids })
    }
  })

  it('is not trusted when the file has changed since', async () => {
    const place = await madePlace()
    const ids = await filled(place)
    const { path, lines } = await onlySegment(place)
    await appendFile(
      path,
      `${serializeStoredDeadLetter(deadLetter('by hand', { savedAt: 1_000 }))}\n`,
    )
    expect(await idsOf(place.store())).toEqual([...ids, 'by hand'])
    // As if a user had removed the first line.
    await writeFile(path, `${lines.slice(1).join('\n')}\n`)
    expect((await idsOf(place.store())).slice(0, 2)).toEqual(['n001', 'n002'])
  })
})

describe('cleanup', () => {
  const DAY = 86_400_000
  const START = Date.UTC(2026, 10, 1)

  it('removes whole days, and nothing younger', async () => {
    const clock = new FakeClock({ now: START })
    const place = await madePlace({ clock })
    const store = place.store()
    for (let day = 0; day < 5; day++) {
      await store.save(deadLetter(`day ${day}`, { savedAt: clock.now() }))
      await clock.advance('1d')
    }
    expect(await store.cleanup({ savedBefore: START + 3 * DAY })).toBe(3)
    expect(await idsOf(store)).toEqual(['day 3', 'day 4'])
    expect(await readdir(place.directory)).toEqual(['2026-11-04', '2026-11-05'])
    await store.close()
    expect(await idsOf(place.store())).toEqual(['day 3', 'day 4'])
  })

  it('keeps dead letters younger than the retention by default', async () => {
    const clock = new FakeClock({ now: START })
    const place = await madePlace({ clock, retention: '2d' })
    const store = place.store()
    for (const days of [3, 2, 1]) {
      await store.save(deadLetter(`${days} days old`, { savedAt: START - days * DAY }))
    }
    expect(await store.cleanup()).toBe(1)
    expect(await idsOf(store)).toEqual(['2 days old', '1 days old'])
    await store.close()
  })

  it('frees the disk space of replayed and deleted dead letters', async () => {
    const place = await madePlace({ maxFileBytes: 4_096 })
    const store = place.store()
    for (let number = 0; number < 60; number++) {
      await store.save(deadLetter(`n${number}`, { savedAt: number }))
    }
    await store.replayBatch({ limit: 59 }, sent)
    const before = (await files(place, '.jsonl')).length
    expect(await store.cleanup({ savedBefore: 0 })).toBe(0)
    expect(await idsOf(store)).toEqual(['n59'])
    expect((await files(place, '.jsonl')).length).toBeLessThan(before / 2)
    await store.close()
    expect(await idsOf(place.store())).toEqual(['n59'])
  })

  it('restores nothing when it removes the file that recorded a deletion', async () => {
    const place = await madePlace({ maxFileBytes: 4_096 })
    const one = place.store()
    const other = place.store()
    await one.save(deadLetter('deleted', { savedAt: 1 }))
    await one.save(deadLetter('kept', { savedAt: 2_000 }))
    await other.save(deadLetter('old', { savedAt: 3 }))
    expect(await other.delete('deleted')).toBe(true)
    await other.close()
    // The other file contains only the record that 'deleted' was deleted.
    const before = await files(place, '.jsonl')
    expect(await one.cleanup({ savedBefore: 1_000 })).toBe(1)
    expect((await files(place, '.jsonl')).length).toBeLessThan(before.length)
    expect(await idsOf(one)).toEqual(['kept'])
    place.crash(one)
    expect(await idsOf(place.store())).toEqual(['kept'])
  })

  it('removes the claims of crashed processes', async () => {
    const place = await madePlace()
    const claim = join(place.directory, 'claims', `${'0'.repeat(32)}.0`)
    await mkdir(join(claim, '..'))
    await writeFile(claim, '')
    const store = place.store()
    await store.cleanup()
    expect(existsSync(claim)).toBe(true)
    await utimes(claim, 1, 1)
    await store.cleanup()
    expect(existsSync(claim)).toBe(false)
  })
})

describe('two processes', () => {
  it('that save the same id without having seen each other keep the later one, and delete both', async () => {
    const place = await madePlace()
    const one = place.store()
    const other = place.store()
    await Promise.all([one.stats(), other.stats()])
    await one.save(deadLetter('same', { savedAt: 2, text: 'later' }))
    await other.save(deadLetter('same', { savedAt: 1, text: 'earlier' }))
    for (const store of [one, other, place.store()]) {
      expect(await idsOf(store)).toEqual(['same'])
      expect(String((await store.get('same'))?.event.bytes)).toBe('later')
      expect(await store.stats()).toMatchObject({ count: 1, bySink: { loki: 1 } })
    }
    expect(await other.delete('same')).toBe(true)
    for (const store of [one, other, place.store()]) expect(await idsOf(store)).toEqual([])
  })

  it('delete only lines they have seen: a concurrent save of another process stays', async () => {
    const place = await madePlace()
    const folder = join(place.directory, '2026-11-15')
    await mkdir(folder)
    const write = (name: string, line: string) =>
      writeFile(join(folder, `${name}.jsonl`), `${line}\n`)
    await write('1', serializeStoredDeadLetter(deadLetter('same', { savedAt: 2, text: 'seen' })))
    await write(
      '2',
      serializeStoredDeadLetter(deadLetter('same', { savedAt: 1, text: 'not seen' })),
    )
    await write('3', '{"v":1,"gone":"2026-11-15/1","at":[0]}')
    const store = place.store()
    expect(String((await store.get('same'))?.event.bytes)).toBe('not seen')
    expect(await store.stats()).toMatchObject({ count: 1, oldestSavedAt: 1 })
    expect(await store.delete('same')).toBe(true)
    expect(await idsOf(place.store())).toEqual([])
  })

  it('may read a deletion before its line', async () => {
    const place = await madePlace()
    const folder = join(place.directory, '2026-11-15')
    await mkdir(folder)
    const [a, b] = ['a', 'b'].map((id) => serializeStoredDeadLetter(deadLetter(id)))
    await writeFile(join(folder, '1.jsonl'), `${a}\n${b}`)
    const at = Buffer.byteLength(`${a}\n`)
    await writeFile(join(folder, '2.jsonl'), `{"v":1,"gone":"2026-11-15/1","at":[${at}]}\n`)
    const store = place.store()
    expect(await idsOf(store)).toEqual(['a'])
    await appendFile(join(folder, '1.jsonl'), '\n')
    expect(await idsOf(store)).toEqual(['a'])
    expect((await store.stats()).count).toBe(1)
  })

  it('do not wait forever for a process that crashed while it was sending', async () => {
    const place = await madePlace({ lease: '1s' })
    const dying = place.store()
    await dying.save(deadLetter('a'))
    void dying.replay('a', () => new Promise(() => undefined))
    const next = place.store()
    await expect.poll(() => files(place, '.0')).toHaveLength(1)
    expect(await next.replay('a', sent)).toBe(false)
    place.crash(dying)
    await expect.poll(() => next.replay('a', sent), { timeout: 10_000 }).toBe(true)
    expect(await readdir(join(place.directory, 'claims'))).toEqual([])
  })

  it('do not take a claim while its owner lives', async () => {
    const place = await madePlace({ lease: '1s' })
    const slow = place.store()
    await slow.save(deadLetter('a'))
    let finish = () => {}
    const replaying = slow.replay('a', () => new Promise((resolve) => (finish = resolve)))
    await expect.poll(() => files(place, '.0')).toHaveLength(1)
    const claim = join(place.directory, (await files(place, '.0'))[0] ?? '')
    const { mtimeMs } = await stat(claim)
    const isRenewed = async () => (await stat(claim)).mtimeMs > mtimeMs + 1_000
    await expect.poll(isRenewed, { timeout: 10_000 }).toBe(true)
    expect(await place.store().replay('a', sent)).toBe(false)
    finish()
    expect(await replaying).toBe(true)
  })
})

describe('fileStore()', () => {
  it('rejects invalid options, with all problems together', () => {
    const options = {
      directory: '',
      fsync: 'sometimes' as 'batch',
      maxFileBytes: 1,
      maxBytes: -1,
      retention: 'long' as '1d',
      lease: '1ms' as const,
    }
    expect(() => fileStore(options)).toThrow(
      /directory: .*\n.*fsync: .*\n.*maxFileBytes: .*\n.*maxBytes: .*\n.*retention: .*\n.*lease: /,
    )
  })

  it('throws with the fix when the directory cannot be used', async () => {
    const place = await madePlace()
    const path = join(place.directory, 'a file')
    await writeFile(path, '')
    for (const directory of [path, join(path, 'below'), '/proc/none/dead-letters']) {
      expect(() => fileStore({ directory })).toThrow(
        expect.objectContaining({
          code: 'UNREACHABLE',
          message: expect.stringContaining('Check that it is a folder') as string,
        }),
      )
    }
  })
})
