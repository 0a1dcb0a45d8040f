import { execFile } from 'node:child_process'
import { PassThrough, Writable } from 'node:stream'
import { join } from 'node:path'
import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { stdout } from '../src/index.ts'
import { event, failureOf, never, problemsOf, refusal } from './world.ts'

/** A reader that takes one chunk when the test lets it. */
function slow() {
  const taken: string[] = []
  const waiting: (() => void)[] = []
  const stream = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _, done) {
      waiting.push(() => {
        taken.push(chunk.toString())
        done()
      })
    },
  })
  return { stream, taken, take: () => waiting.shift()?.() }
}

describe('stdout', () => {
  it('writes one line of JSON for each event', async () => {
    const stream = new PassThrough()
    const sink = stdout({ stream })
    await sink.send([event({ id: 'a' }), event({ id: 'b' })], { signal: never })
    const lines = String(stream.read()).trimEnd().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(['a', 'b'])
    await sink.healthCheck?.({ signal: never })
    await sink.close()
    expect(stream.writableEnded).toBe(false)
    expect(stream.listenerCount('error')).toBe(0)
  })

  it('resolves only after the reader has taken it', async () => {
    const { stream, taken, take } = slow()
    const sink = stdout({ stream })
    const ends: string[] = []
    const sending = sink.send([event()], { signal: never }).then(() => ends.push('sent'))
    await new Promise(setImmediate)
    expect(ends).toEqual([])
    take()
    await sending
    expect(taken).toHaveLength(1)
  })

  it('rejects with the reason of the signal while the reader does not read', async () => {
    const { stream } = slow()
    const aborting = new AbortController()
    const sending = stdout({ stream }).send([event()], aborting)
    aborting.abort(new Error('over'))
    expect((await refusal(sending)).message).toBe('over')
    const late = stdout({ stream }).send([event()], aborting)
    expect((await refusal(late)).message).toBe('over')
  })

  it('reports a closed reader as a failure of class transient, and does not end the process', async () => {
    const stream = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('gone'), { code: 'EPIPE' })),
    })
    const sink = stdout({ stream })
    const broken = { class: 'transient', code: 'UNREACHABLE' }
    expect(await failureOf(sink.send([event()], { signal: never }))).toMatchObject(broken)
    expect(await failureOf(sink.send([event()], { signal: never }))).toMatchObject(broken)
    expect(await failureOf(sink.healthCheck?.({ signal: never }))).toMatchObject(broken)
  })

  it('survives a real pipe that is closed', async () => {
    const child = execFile(process.execPath, [
      '--conditions=@redrive/source',
      join(import.meta.dirname, 'pipe.ts'),
    ])
    child.stdout?.destroy()
    let output = ''
    child.stderr?.on('data', (chunk: string) => {
      output += chunk
    })
    const code = await new Promise((resolve) => child.on('close', resolve))
    expect([code, output]).toEqual([0, 'refused: UNREACHABLE\n'])
  })

  it('rejects after a close', async () => {
    const sink = stdout({ stream: new PassThrough() })
    await sink.close()
    const error = await refusal(sink.send([event()], { signal: never }))
    expect(isRedriveError(error, 'CLOSED')).toBe(true)
    expect(problemsOf(() => stdout({ batch: 0 }))).toHaveLength(1)
  })
})
