import { describe, expect, it } from 'vitest'
import { withoutConfirms } from '../src/rabbitmq/frames.ts'

/** A method frame on channel 1. */
function method(classId: number, methodId: number, rest: readonly number[] = []): Buffer {
  const payload = Buffer.from([0, classId, 0, methodId, ...rest])
  const header = Buffer.from([1, 0, 1, 0, 0, 0, payload.length])
  return Buffer.concat([header, payload, Buffer.from([0xce])])
}

const CONFIRM = method(60, 80, [0, 0, 0, 0, 0, 0, 0, 1, 0])
const OPEN_OK = method(20, 11, [0, 0, 0, 0])
const HEARTBEAT = Buffer.from([8, 0, 0, 0, 0, 0, 0, 0xce])

describe('a connection without confirms', () => {
  it('drops confirms and passes everything else', () => {
    const { pass, dropped } = withoutConfirms()
    const bytes = Buffer.concat([OPEN_OK, CONFIRM, HEARTBEAT, CONFIRM, OPEN_OK])
    expect(pass(bytes)).toEqual(Buffer.concat([OPEN_OK, HEARTBEAT, OPEN_OK]))
    expect(dropped()).toBe(2)
  })

  it('works for any split of the bytes', () => {
    const bytes = Buffer.concat([OPEN_OK, CONFIRM, HEARTBEAT])
    for (let cut = 0; cut <= bytes.length; cut++) {
      const { pass, dropped } = withoutConfirms()
      const passed = [pass(bytes.subarray(0, cut)), pass(bytes.subarray(cut))]
      expect(Buffer.concat(passed)).toEqual(Buffer.concat([OPEN_OK, HEARTBEAT]))
      expect(dropped()).toBe(1)
    }
  })
})
