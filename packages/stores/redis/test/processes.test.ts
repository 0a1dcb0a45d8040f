import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { urlOf } from '@redrive/dev-support'
import { expect, it } from 'vitest'
import { nodeRedis, RedisWorld } from './world.ts'

const url = await urlOf('redis')
const COUNT = 150

interface Report {
  readonly sent: readonly string[]
  readonly answer: { readonly replayed: number; readonly failed: number }
}

const messageOf = async <T>(child: ChildProcess): Promise<T> =>
  (await once(child, 'message'))[0] as T

it('three processes that save and replay concurrently send each dead letter once', async () => {
  const world = new RedisWorld(url, nodeRedis)
  const program = new URL('./member.ts', import.meta.url).pathname
  const execArgv = ['--conditions=@redrive/source']
  const members = ['a', 'b', 'c'].map((name) =>
    fork(program, [url, world.prefix, name, String(COUNT)], { execArgv }),
  )
  try {
    await Promise.all(members.map(messageOf))
    await world.expectWhole()
    const reporting = members.map((member) => messageOf<Report>(member))
    for (const member of members) member.send('go')
    const reports = await Promise.all(reporting)
    const sent = reports.flatMap((report) => report.sent)
    expect(sent).toHaveLength(3 * COUNT)
    expect(new Set(sent).size).toBe(3 * COUNT)
    for (const report of reports) {
      expect(report.answer).toEqual({ replayed: report.sent.length, failed: 0 })
    }
    await world.expectWhole()
    expect((await (await world.store()).stats()).count).toBe(0)
  } finally {
    for (const member of members) member.kill()
    await world.close()
  }
})
